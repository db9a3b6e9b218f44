/** Numbers that have gone wrong without anybody being told: which, since when, and what to do. */
import { html } from '../kit/html.js';
import { useProperty } from '../kit/components.js';
import { count, percent } from '../kit/format.js';
import { Link, useLocation } from '../kit/state.js';

/** How many orders are named. */
const FEW = 5;

/** What is found of an event's share by signal, and what to look at. Only refusals are to be seen elsewhere than in the list of events. */
const SIGNALS = {
  volume: { does: 'were stored', advice: 'Look at what was changed then: a lost tag, a deleted webhook, a renamed event, a consent banner.', figure: count },
  client_id: { does: 'have a client id', advice: 'Look whether the sender still reads the cookie, and at the consent banner.' },
  email: { does: 'have an e-mail address', advice: 'Look whether a field of a form or of a webhook was renamed.' },
  click_id: { does: 'have a click id', advice: 'Look whether a redirect or a cache drops the parameters of landing pages, or a campaign has ended.' },
  duplicates: { does: 'were known already', advice: 'Look for a tag that is on the page twice, and for a sender that takes 202 for an error.' },
  refused: { does: 'were refused', advice: 'The sender has to mend what is wrong with them.', view: 'rejections' },
  currency: { does: 'are in', advice: 'Look which currency the sender names, and whether the amounts have changed with it.' },
};

/**
 * The notice of the overview; nothing where there are words for none of it.
 * @param {{findings: object[], orders: object[]}} props what of the read API's answer is wrong; while pods are replaced, those of another
 *   version may know of other signals
 */
export function View({ findings, orders }) {
  const known = findings.filter(({ signal }) => Object.hasOwn(SIGNALS, signal));
  return known.length + orders.length > 0 && html`<section class="notice warn quality" aria-label="Numbers that have gone wrong"><ul>
  ${known.map((finding) => html`<${Finding} ...${finding} />`)}
  ${orders.map((day) => html`<${Orders} ...${day} />`)}
</ul></section>`;
}

function Finding({ event, signal, currency, from, actual, expected }) {
  const { times } = useProperty();
  const { viewHref } = useLocation();
  const { does, advice, figure = percent, view = 'events' } = SIGNALS[signal];
  return html`<li><strong><bdi>${event ?? 'Events without a name of their own'}</bdi></strong>: since ${times.minute(from)}
    ${' '}${figure(actual)} ${does}${signal === 'currency' && html` <bdi>${currency ?? 'no currency'}</bdi>`}, where ${figure(expected)} are usual at this hour
    of the week. ${advice} <${Link} href=${viewHref(view, event && view === 'events' ? { event } : {})}>${view === 'events' ? 'To the events' : 'To the rejections'}<//></li>`;
}

/** A day's orders of a shop that are not among the purchases as the shop has them. */
function Orders({ source, day, orders, missing, different }) {
  const { viewHref } = useLocation();
  const named = (list) => html`${count(list.count)} (<bdi>${list.orders.slice(0, FEW).map((order) => order.order_id).join(', ')}${list.count > FEW ? ', …' : ''}</bdi>)`;
  return html`<li><strong><bdi>${source}</bdi></strong>: of ${count(orders)} orders of ${day}
    ${missing.count > 0 && html` ${named(missing)} are not stored`}${missing.count > 0 && different.count > 0 && ','}
    ${different.count > 0 && html` ${named(different)} are stored with another amount`}. What was refused is among
    ${' '}<${Link} href=${viewHref('rejections')}>the rejections<//>; what is missing can be sent with its order’s id and time.</li>`;
}
