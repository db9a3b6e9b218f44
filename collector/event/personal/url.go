package personal

import (
	"slices"
	"strings"
)

// CleanURL takes out of a URL, however malformed, its userinfo, the parameters of its query and fragment that
// tell of the person, and the segments of its path with a contact in them. The rest stays as it was written.
func (f *Finder) CleanURL(raw string) string {
	if f.isClean(raw) {
		return raw
	}
	cleaned := f.cleanParts(raw)
	if !f.ContactIn(cleaned) {
		return cleaned
	}
	// A contact is spread over the parts: of what has a query the rest is kept.
	base, _, hasQuery := strings.Cut(cleaned, "?")
	if !hasQuery {
		return ""
	}
	return f.WithoutContact(base)
}

// isClean says of most URLs in which there is nothing to take out that there is nothing, without looking at their parts.
func (f *Finder) isClean(raw string) bool {
	if suspected := suspicionOf(raw); suspected == anyContact || suspected == plainNumber && f.phoneIn(raw) {
		return false
	}
	if strings.Contains(raw, "?#") || strings.HasSuffix(raw, "?") || strings.HasSuffix(raw, "#") {
		return false
	}
	if len(f.names) == 0 {
		return true
	}
	// A space of a name may stand there as a "+", and what is not ASCII in several spellings.
	return isASCII(raw) && strings.IndexByte(raw, '+') < 0 &&
		!slices.ContainsFunc(f.names, func(name string) bool { return strings.Contains(lower(raw), name) })
}

func (f *Finder) cleanParts(raw string) string {
	rest, fragment, hasFragment := strings.Cut(raw, "#")
	base, query, hasQuery := strings.Cut(rest, "?")

	cleaned := f.cleanBase(base)
	if hasQuery {
		if query = f.cleanParameters(query); query != "" {
			cleaned += "?" + query
		}
	}
	if hasFragment {
		if fragment = f.cleanParameters(fragment); fragment != "" {
			cleaned += "#" + fragment
		}
	}
	return cleaned
}

// cleanBase cleans scheme, authority and path.
func (f *Finder) cleanBase(base string) string {
	var prefix string
	if start := strings.Index(base, "//"); start >= 0 {
		prefix, base = base[:start+2], base[start+2:]
		authority, path, hasPath := strings.Cut(base, "/")
		prefix += f.WithoutContact(authority[strings.LastIndexByte(authority, '@')+1:])
		if !hasPath {
			return prefix
		}
		prefix, base = prefix+"/", path
	}
	segments := strings.Split(base, "/")
	for i, segment := range segments {
		segments[i] = f.WithoutContact(segment)
	}
	return prefix + strings.Join(segments, "/")
}

func (f *Finder) cleanParameters(query string) string {
	var kept []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		found := f.ContactIn(parameter)
		if !strings.HasPrefix(name, "utm_") {
			found = found || f.isPersonal(name) || f.isPersonal(value)
		}
		if !found {
			kept = append(kept, parameter)
		}
	}
	return strings.Join(kept, "&")
}
