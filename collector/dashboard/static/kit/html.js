/** What every module of the page renders with: Preact, its hooks, and htm's templates, which escape every text. */
export * from '../packages/preact.js';
