/** The views, in the order of the navigation: what each is called, what shows it, and what of the address it takes. */
import { later } from './kit/components.js';
import { Attribution } from './views/attribution.js';
import { Deliveries } from './views/deliveries.js';
import { Events } from './views/events.js';
import { Funnel } from './views/funnel.js';
import { Overview } from './views/overview.js';
import { Rejections } from './views/rejections.js';
import { Settings } from './views/settings.js';

/**
 * Beside the period and the filters, which go along from view to view, each view knows the parameters that it takes. One of the
 * console's is shown there alone, and shows itself also where the Property's numbers may not or cannot be read.
 * @type {Record<string, {title: string, show: any, knows: string[], console?: boolean}>}
 */
export const VIEWS = {
  overview: { title: 'Overview', show: Overview, knows: ['measure', 'by', 'of', 'order_by', 'by_limit', 'of_limit'] },
  events: { title: 'Events', show: Events, knows: ['event_id', 'order_id', 'visitor', 'status', 'platform', 'class', 'id'] },
  funnel: { title: 'Funnel', show: Funnel, knows: ['steps', 'window'] },
  attribution: { title: 'Attribution', show: Attribution, knows: ['conversion_event', 'group_by', 'lookback', 'measure', 'limit'] },
  deliveries: { title: 'Deliveries', show: Deliveries, knows: ['plot', 'shadow'] },
  rejections: { title: 'Rejections', show: Rejections, knows: ['limit'] },
  settings: { title: 'Settings', show: Settings, knows: [] },
  access: { title: 'Keys and tokens', show: later(() => import('./views/access.js')), knows: [], console: true },
};

/** The view of an address that names none. */
export const FIRST = 'overview';
