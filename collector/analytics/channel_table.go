package analytics

// The tables by which touches are told apart. docs/reference/channels.md shows the same tables; a test compares them.

// click says what a click id stands for where no utm parameter says otherwise.
type click struct{ id, source, medium string }

// clicks lists the ids that a platform puts into the link of a click; those of paid clicks first. The ids of
// browsers that travel with them (fbp, fbc, ttp) stay for months in a cookie and tell of no click.
var clicks = [...]click{
	{"gclid", "google", "cpc"},
	{"msclkid", "bing", "cpc"},
	{"ttclid", "tiktok", "paid_social"},
	{"twclid", "x", "paid_social"},
	{"sc_click_id", "snapchat", "paid_social"},
	{"rdt_cid", "reddit", "paid_social"},
	{"li_fat_id", "linkedin", "paid_social"},
	{"epik", "pinterest", "paid_social"},
	// Facebook puts fbclid into every link that leaves it, paid or not.
	{"fbclid", "facebook", "social"},
}

// rules is the channel table; the first row that matches counts.
var rules = [...]rule{
	{"Paid Search", search, []string{"cpc", "ppc", "paid", "paid_search", "paidsearch", "sem", "cpv", "cpa", "ads"}},
	{"Paid Search", anySource, []string{"paid_search", "paidsearch", "sem"}},
	{"Paid Social", social, []string{"cpc", "ppc", "paid", "cpm", "cpv", "cpa", "ads"}},
	{"Paid Social", anySource, []string{"paid_social", "paidsocial", "social_paid", "social_ads"}},
	{"Paid Search", anySource, []string{"cpc", "ppc"}},
	{"Display", anySource, []string{"display", "banner", "cpm", "programmatic", "expandable", "interstitial"}},
	{"Email", anySource, []string{"email", "e_mail", "mail", "newsletter"}},
	{"Email", mail, nil},
	{"Affiliate", anySource, []string{"affiliate", "affiliates", "cpa", "partner"}},
	{"AI Assistants", anySource, []string{"ai", "ai_assistant", "llm"}},
	{"AI Assistants", assistant, nil},
	{"Organic Search", anySource, []string{"organic", "organic_search"}},
	{"Organic Search", search, []string{"", "search", "referral"}},
	{"Organic Social", anySource, []string{"social", "organic_social", "social_network", "social_media", "sm"}},
	{"Organic Social", social, nil},
	{"Direct", direct, []string{"", "(none)", "(not_set)", "direct", "none"}},
	{"Referral", anySource, nil},
}

// kinds has a row for every source that is known. "name.*" stands for name.com, name.de, name.co.uk and so on.
var kinds = map[string]kind{
	"google": search, "google.*": search, "bing": search, "bing.com": search, "yahoo": search, "search.yahoo.com": search,
	"yahoo.*": search, "duckduckgo": search, "duckduckgo.com": search, "ecosia": search, "ecosia.org": search,
	"baidu": search, "baidu.com": search, "yandex": search, "yandex.*": search, "ya.ru": search, "qwant": search,
	"qwant.com": search, "startpage.com": search, "search.brave.com": search, "kagi.com": search, "naver": search,
	"search.naver.com": search, "seznam": search, "search.seznam.cz": search, "sogou.com": search, "ask.com": search,
	"search.aol.com": search, "com.google.android.googlequicksearchbox": search,

	"facebook": social, "facebook.com": social, "fb": social, "fb.com": social, "fb.me": social, "meta": social,
	"messenger.com": social, "instagram": social, "instagram.com": social, "ig": social, "threads": social,
	"threads.net": social, "threads.com": social, "twitter": social, "twitter.com": social, "x": social, "x.com": social,
	"t.co": social, "linkedin": social, "linkedin.com": social, "lnkd.in": social, "com.linkedin.android": social,
	"pinterest": social, "pinterest.*": social, "pinterest.com": social, "pin.it": social, "reddit": social, "reddit.com": social,
	"com.reddit.frontpage": social, "tiktok": social, "tiktok.com": social, "snapchat": social, "snapchat.com": social,
	"youtube": social, "youtube.com": social, "youtu.be": social, "bluesky": social, "bsky.app": social,
	"mastodon": social, "mastodon.social": social, "tumblr": social, "tumblr.com": social, "quora": social,
	"quora.com": social, "vk": social, "vk.com": social, "ok.ru": social, "weibo": social, "weibo.com": social,
	"xing": social, "xing.com": social, "whatsapp": social, "whatsapp.com": social, "wa.me": social, "telegram": social,
	"t.me": social, "discord": social, "discord.com": social, "nextdoor.com": social,

	"chatgpt": assistant, "chatgpt.com": assistant, "openai": assistant, "openai.com": assistant,
	"perplexity": assistant, "perplexity.ai": assistant, "gemini": assistant, "gemini.google.com": assistant,
	"bard.google.com": assistant, "claude": assistant, "claude.ai": assistant, "copilot": assistant,
	"copilot.com": assistant, "copilot.microsoft.com": assistant, "deepseek": assistant, "deepseek.com": assistant,
	"grok": assistant, "grok.com": assistant, "meta.ai": assistant, "mistral": assistant, "chat.mistral.ai": assistant,
	"you.com": assistant, "poe.com": assistant,

	"email": mail, "e-mail": mail, "newsletter": mail, "mail.google.com": mail, "com.google.android.gm": mail,
	"outlook.live.com": mail, "outlook.office.com": mail, "outlook.office365.com": mail, "mail.yahoo.com": mail,
	"mail.proton.me": mail, "mail.aol.com": mail, "mail.ru": mail,

	"direct": direct, "(direct)": direct,
}
