// Has Segment's destinations make a request of an event, each as it would send it to its platform.
//
//   node segment.mjs < EVENT
//
// EVENT is a purchase in the collect API's form. On standard output comes an object with the body of each platform's request.
// What a destination is told are its own fields, with the values that the event has for them; nothing is hashed or renamed
// here. NODE_JUDGES names the folder that hack/npm.sh printed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_JUDGES}/`);
const destination = (name) => require(`@segment/action-destinations/dist/destinations/${name}`).default;

const event = JSON.parse(readFileSync(0, "utf8"));
const { user, data, context, consent } = event;
const clicks = context.click_ids;
const items = data.contents;
const seconds = String(Math.floor(Date.parse(event.timestamp) / 1000));
// The click ids that Mixpanel's own library records.
const recorded = ["gclid", "wbraid", "fbclid", "ttclid", "msclkid", "li_fat_id", "twclid"];
// What of the context is a property of one's own at Klaviyo and Amplitude.
const page = {
  page_url: context.page_url,
  page_title: context.page_title,
  referrer: context.referrer,
  utm_source: context.utm_source,
  utm_medium: context.utm_medium,
  utm_campaign: context.utm_campaign,
  utm_term: context.utm_term,
  utm_content: context.utm_content,
  action_source: context.action_source,
};
const words = { granted: "GRANTED", denied: "DENIED" };

const destinations = {
  Meta: {
    action: destination("facebook-conversions-api").actions.purchase2,
    settings: { pixelId: "1" },
    payload: {
      action_source: "website",
      event_time: seconds,
      event_id: event.event_id,
      event_source_url: context.page_url,
      user_data: {
        email: user.email[0],
        phone: user.phone[0],
        firstName: user.first_name,
        lastName: user.last_name,
        city: user.city,
        state: user.state,
        zip: user.zip,
        country: user.country.toLowerCase(),
        dateOfBirth: user.date_of_birth.replaceAll("-", ""),
        gender: user.gender,
        externalId: [event.user_id, event.client_id],
        client_ip_address: context.ip,
        client_user_agent: context.user_agent,
        fbc: clicks.fbc,
        fbp: clicks.fbp,
      },
      value: data.value,
      currency: data.currency,
      content_name: data.content_name,
      content_type: "product",
      content_ids: items.map(({ id }) => id),
      contents: items.map(({ id, quantity, price }) => ({ id, quantity, item_price: price })),
      num_items: items.reduce((sum, { quantity }) => sum + quantity, 0),
      custom_data: { order_id: data.order_id, search_string: data.search_term },
      data_processing_options: consent.limited_data_use,
      data_processing_options_country: 0,
      data_processing_options_state: 0,
    },
    body: (json) => json.data[0],
  },
  GA4: {
    action: destination("google-analytics-4").actions.purchase,
    settings: { measurementId: "G-1", apiSecret: "secret" },
    payload: {
      client_id: event.client_id,
      user_id: event.user_id,
      timestamp_micros: event.timestamp,
      transaction_id: data.order_id,
      value: data.value,
      currency: data.currency,
      tax: data.tax,
      shipping: data.shipping,
      coupon: data.coupon,
      engagement_time_msec: event.engagement_time_msec,
      ad_user_data_consent: words[consent.ad_user_data],
      ad_personalization_consent: words[consent.ad_personalization],
      items: items.map((item) => ({
        item_id: item.id,
        item_name: item.name,
        item_brand: item.brand,
        item_variant: item.variant,
        item_category: item.category,
        item_category2: item.category2,
        item_category3: item.category3,
        item_category4: item.category4,
        item_category5: item.category5,
        price: item.price,
        discount: item.discount,
        quantity: item.quantity,
      })),
      params: { session_id: event.session_id, page_location: context.page_url, page_title: context.page_title, ...event.properties },
    },
    body: (json) => json,
  },
  TikTok: {
    action: destination("tiktok-conversions").actions.reportWebEvent,
    settings: { pixelCode: "C1", accessToken: "token" },
    payload: {
      event: "Purchase",
      event_id: event.event_id,
      timestamp: event.timestamp,
      email: user.email,
      phone_number: user.phone,
      external_id: [event.user_id, event.client_id],
      first_name: user.first_name,
      last_name: user.last_name,
      address: { city: user.city, state: user.state, country: user.country, zip_code: user.zip },
      ttclid: clicks.ttclid,
      ttp: clicks.ttp,
      ip: context.ip,
      user_agent: context.user_agent,
      locale: context.language,
      url: context.page_url,
      referrer: context.referrer,
      value: data.value,
      currency: data.currency,
      order_id: data.order_id,
      query: data.search_term,
      limited_data_use: consent.limited_data_use,
      content_type: "product",
      num_items: items.reduce((sum, { quantity }) => sum + quantity, 0),
      contents: items.map((item) => ({
        content_id: item.id,
        content_name: item.name,
        content_category: item.category,
        brand: item.brand,
        price: item.price,
        quantity: item.quantity,
      })),
    },
    body: (json) => json.data[0],
  },
  Pinterest: {
    action: destination("pinterest-conversions").actions.reportConversionEvent,
    settings: { ad_account_id: "1", conversion_token: "token" },
    payload: {
      event_name: "checkout",
      action_source: "web",
      event_time: event.timestamp,
      event_id: event.event_id,
      event_source_url: context.page_url,
      language: context.language.slice(0, 2),
      opt_out: consent.limited_data_use,
      user_data: {
        email: [...user.email],
        phone: [...user.phone],
        first_name: [user.first_name],
        last_name: [user.last_name],
        city: [user.city],
        state: [user.state],
        zip: [user.zip],
        country: [user.country],
        date_of_birth: [user.date_of_birth.replaceAll("-", "")],
        gender: [user.gender],
        external_id: [event.user_id, event.client_id],
        client_ip_address: context.ip,
        client_user_agent: context.user_agent,
        click_id: clicks.epik,
      },
      custom_data: {
        value: data.value,
        currency: data.currency,
        order_id: data.order_id,
        search_string: data.search_term,
        content_ids: items.map(({ id }) => id),
        contents: items.map(({ id, quantity, price }) => ({ id, quantity, item_price: price })),
        num_items: items.reduce((sum, { quantity }) => sum + quantity, 0),
        opt_out_type: "LDP",
      },
    },
    body: (json) => json.data[0],
  },
  Snapchat: {
    action: destination("snap-conversions-api").actions.reportConversionEvent,
    settings: { pixel_id: "1ec32188-754e-4be2-8e55-c949a984a39f" },
    auth: { accessToken: "token" },
    payload: {
      event_name: "PURCHASE",
      event_id: event.event_id,
      event_time: seconds,
      action_source: "website",
      event_source_url: context.page_url,
      user_data: {
        email: user.email[0],
        phone: user.phone[0],
        firstName: user.first_name,
        lastName: user.last_name,
        city: user.city,
        state: user.state,
        zip: user.zip,
        country: user.country,
        gender: user.gender,
        dateOfBirth: user.date_of_birth.replaceAll("-", ""),
        externalId: [event.user_id, event.client_id],
        client_ip_address: context.ip,
        client_user_agent: context.user_agent,
        sc_click_id: clicks.sc_click_id,
      },
      custom_data: {
        value: data.value,
        currency: data.currency,
        order_id: data.order_id,
        search_string: data.search_term,
        num_items: items.reduce((sum, { quantity }) => sum + quantity, 0),
      },
      products: items.map((item) => ({ item_id: item.id, item_category: item.category, brand: item.brand })),
      data_processing_options: consent.limited_data_use,
    },
    body: (json) => json.data[0],
  },
  Microsoft: {
    action: destination("ms-bing-capi").actions.sendEvent,
    settings: { UetTag: "1", adStorageConsent: "G" },
    payload: {
      data: {
        eventType: "custom",
        eventName: event.event,
        eventId: event.event_id,
        eventTime: event.timestamp,
        eventSourceUrl: context.page_url,
        referrerUrl: context.referrer,
        pageTitle: context.page_title,
      },
      userData: {
        em: user.email[0],
        ph: user.phone[0],
        externalId: event.user_id,
        anonymousId: event.client_id,
        msclkid: clicks.msclkid,
        clientIpAddress: context.ip,
        clientUserAgent: context.user_agent,
      },
      customData: {
        value: data.value,
        currency: data.currency,
        transactionId: data.order_id,
        searchTerm: data.search_term,
        itemIds: items.map(({ id }) => id),
        pageType: "purchase",
      },
      items: items.map(({ id, name, price, quantity }) => ({ id, name, price, quantity })),
    },
    body: (json) => json.data[0],
  },
  LinkedIn: {
    action: destination("linkedin-conversions").actions.streamConversion,
    settings: {},
    payload: {
      conversionHappenedAt: event.timestamp,
      conversionValue: { currencyCode: data.currency, amount: String(data.value) },
      eventId: event.event_id,
      email: user.email[0],
      linkedInUUID: clicks.li_fat_id,
      userInfo: { firstName: user.first_name, lastName: user.last_name, countryCode: user.country },
      externalIds: [event.user_id],
    },
    hookOutputs: { onMappingSave: { outputs: { id: "1" } } },
    body: (json) => json,
  },
  Mixpanel: {
    action: destination("mixpanel").actions.trackEvent,
    settings: { projectToken: "token", apiSecret: "secret", apiRegion: "US 🇺🇸" },
    payload: {
      event: event.event,
      time: event.timestamp,
      distinct_id: event.user_id,
      user_id: event.user_id,
      anonymous_id: event.client_id,
      insert_id: event.event_id,
      ip: context.ip,
      language: context.language,
      url: context.page_url,
      referrer: context.referrer,
      utm_properties: {
        utm_source: context.utm_source,
        utm_medium: context.utm_medium,
        utm_campaign: context.utm_campaign,
        utm_term: context.utm_term,
        utm_content: context.utm_content,
      },
      event_properties: {
        ...event.properties,
        ...data,
        session_id: event.session_id,
        engagement_time_msec: event.engagement_time_msec,
        ...Object.fromEntries(recorded.map((name) => [name, clicks[name]])),
        sccid: clicks.sc_click_id,
      },
    },
    body: (json) => json[0],
  },
  Klaviyo: {
    action: destination("klaviyo").actions.trackEvent,
    settings: { api_key: "key" },
    payload: {
      profile: { external_id: event.user_id, anonymous_id: event.client_id },
      metric_name: "Placed Order",
      time: event.timestamp,
      value: data.value,
      unique_id: event.event_id,
      properties: {
        ...event.properties,
        ...page,
        tax: data.tax,
        shipping: data.shipping,
        search_term: data.search_term,
        list_id: data.list_id,
        list_name: data.list_name,
        OrderId: data.order_id,
        ProductID: data.content_id,
        ProductName: data.content_name,
        DiscountCode: data.coupon,
        DiscountValue: data.discount,
        Items: items.map(({ id, name, variant, brand, quantity, price }) => ({
          ProductID: id,
          ProductName: name,
          Variant: variant,
          Brand: brand,
          Quantity: quantity,
          ItemPrice: price,
        })),
      },
    },
    // A job of two is told as Weir's payload is: by its row.
    batch: true,
    body: (json) => json.data.attributes["events-bulk-create"].data[0],
  },
  Amplitude: {
    action: destination("amplitude").actions.logPurchase,
    settings: { apiKey: "key", secretKey: "secret", endpoint: "north_america" },
    payload: {
      event_type: event.event,
      user_id: event.user_id,
      device_id: event.client_id,
      time: event.timestamp,
      insert_id: event.event_id,
      ip: context.ip,
      language: context.language,
      userAgent: context.user_agent,
      userAgentParsing: false,
      includeRawUserAgent: true,
      min_id_length: 1,
      event_properties: {
        ...event.properties,
        ...data,
        event_id: event.event_id,
        session_id: event.session_id,
        engagement_time_msec: event.engagement_time_msec,
        ...page,
        ...Object.fromEntries(["gbraid", "rdt_cid", ...recorded].map((name) => [name, clicks[name]])),
      },
      revenue: data.value,
      revenueType: "Purchase",
    },
    body: (json) => json.events[0],
  },
};

Date.now = () => Date.parse(event.timestamp); // LinkedIn's destination takes no old events
const bodies = {};
for (const [platform, { action, settings, auth, payload, hookOutputs, batch, body }] of Object.entries(destinations)) {
  const request = async (url, { json }) => {
    bodies[platform] ??= body(json);
    return { data: {}, status: 200 };
  };
  const features = { FB_CAPI_REFACTOR_PURCHASE_EVENT: true };
  if (batch) {
    await action.performBatch(request, { settings, payload: [payload, payload], features });
    continue;
  }
  await action.perform(request, { settings, auth, payload, hookOutputs, features, syncMode: "add" });
}
console.log(JSON.stringify(bodies));
