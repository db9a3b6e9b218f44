/** The views, in the order of the navigation: what each is called, and what shows it. */
import { Attribution } from './views/attribution.js';
import { Deliveries } from './views/deliveries.js';
import { Events } from './views/events.js';
import { Funnel } from './views/funnel.js';
import { Overview } from './views/overview.js';
import { Rejections } from './views/rejections.js';
import { Settings } from './views/settings.js';

/** @type {Record<string, {title: string, show: any}>} */
export const VIEWS = {
  overview: { title: 'Overview', show: Overview },
  events: { title: 'Events', show: Events },
  funnel: { title: 'Funnel', show: Funnel },
  attribution: { title: 'Attribution', show: Attribution },
  deliveries: { title: 'Deliveries', show: Deliveries },
  rejections: { title: 'Rejections', show: Rejections },
  settings: { title: 'Settings', show: Settings },
};

/** The view of an address that names none. */
export const FIRST = 'overview';
