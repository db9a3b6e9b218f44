package segment

import (
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event/outline"
)

// call is a kind of message, as far as they are read differently.
type call int

const (
	track   call = iota
	product      // a track call about one product
	paid         // a purchase or a refund
	page
	screen

	calls = int(iota)
)

// form is how the messages of one kind of call are read: what stands in which place of them.
type form struct {
	rows []Row
	// sections and names are the rows' members: the object, and the name in it.
	sections []*section
	names    []string
	message  *place
	// What is more than a value, by the row.
	contents, pageURL, pageSearch, email, phone int
	// always has a bit for each row whose value does not depend on the message.
	always uint64
}

// section is an object of an envelope.
type section struct {
	name string
	in   *section
}

// sections has the objects by their paths.
var sections = func() map[string]*section {
	top := new(section)
	context := &section{"context", top}
	return map[string]*section{
		"": top, "user": {"user", top}, "data": {"data", top}, "context": context, "context.click_ids": {"click_ids", context},
	}
}()

// within says whether the section is another one, or in it.
func (s *section) within(other *section) bool {
	for ; s != nil; s = s.in {
		if s == other {
			return true
		}
	}
	return false
}

// place is a member of a message.
type place struct {
	// row is what is read here, -1 for nothing; the lower the rank, the earlier it is looked for here.
	row, rank int
	// personal says that what stands here tells of a person.
	personal bool
	// members are what is known of an object's; "*" is for any other.
	members map[string]*place
}

func (p *place) of(name string) *place {
	if member, known := p.members[name]; known {
		return member
	}
	return p.members["*"]
}

// at returns the place of a path, and makes it where it is not there yet.
func (p *place) at(path string) *place {
	for name := range strings.SplitSeq(path, ".") {
		if p.members == nil {
			p.members = map[string]*place{}
		}
		member := p.members[name]
		if member == nil {
			member = &place{row: -1}
			p.members[name] = member
		}
		p = member
	}
	return p
}

// forms has one for each call.
var forms = func() (all [calls]form) {
	for c := range all {
		all[c] = newForm(call(c))
	}
	return all
}()

func newForm(c call) form {
	f := form{rows: rowsOf(c), message: &place{row: -1}}
	for i, row := range f.rows {
		object, name := "", row.To
		if dot := strings.LastIndexByte(row.To, '.'); dot >= 0 {
			object, name = row.To[:dot], row.To[dot+1:]
		}
		if row.always != "" {
			f.always |= 1 << i
		}
		f.sections, f.names = append(f.sections, sections[object]), append(f.names, name)
		for rank, path := range row.From {
			at := f.message.at(path)
			at.row, at.rank, at.personal = i, rank, object == "user"
		}
	}
	for _, name := range addresses {
		f.message.at("properties." + name).personal = true
	}
	f.email, f.phone = f.rowOf("user.email"), f.rowOf("user.phone")
	f.contents, f.pageURL, f.pageSearch = f.rowOf("data.contents"), f.rowOf("context.page_url"), f.rowOf(pageSearch)
	return f
}

// rowOf returns the index of the row of an envelope's member, -1 where there is none.
func (f *form) rowOf(member string) int {
	return slices.IndexFunc(f.rows, func(r Row) bool { return r.To == member })
}

// How much is kept of lists. What has more is refused by its length.
const (
	maxProducts = 100
	maxListed   = 100
)

// whole opens everything in an object, but for the objects in lists.
var whole = func() *outline.Shape {
	shape := new(outline.Shape)
	shape.Unknown = &outline.Member{Object: shape, MaxElements: maxListed}
	return shape
}()

// messageShape keeps of a message what any form reads.
var messageShape = func() *outline.Shape {
	message := place{row: -1}
	for _, path := range []string{
		"type", "event", "messageId", "timestamp", "originalTimestamp", "sentAt", "channel", consentPreferences, consentAllowed, consentDenied,
	} {
		message.at(path)
	}
	for c := range calls {
		for _, row := range rowsOf(call(c)) {
			for _, path := range row.From {
				message.at(path)
			}
		}
	}
	for _, member := range ownConsent {
		message.at(consentMember + "." + member)
	}
	shape := shapeOf(&message)
	properties := *whole
	properties.Known = []outline.Member{
		{Name: "products", MaxElements: maxProducts, Elements: &outline.Shape{Unknown: new(outline.Member)}},
	}
	for i := range shape.Known {
		if shape.Known[i].Name == "properties" {
			shape.Known[i].Object = &properties
		}
	}
	return shape
}()

// contextShape keeps what is read of a batch's own context.
var contextShape = func() *outline.Shape {
	for _, member := range messageShape.Known {
		if member.Name == "context" {
			return member.Object
		}
	}
	return nil
}()

// opened are the members that are kept with all that is in them.
var opened = []string{"categoryPreferences", "categories"}

// shapeOf keeps what is known of an object, in the order of the names. Lists are kept, and what is below a place without
// members of its own.
func shapeOf(p *place) *outline.Shape {
	if len(p.members) == 0 {
		return whole
	}
	shape := new(outline.Shape)
	for name, member := range p.members {
		kept := outline.Member{Name: name, MaxElements: maxListed}
		if len(member.members) > 0 || slices.Contains(opened, name) {
			kept.Object = shapeOf(member)
		}
		if name == "*" {
			shape.Unknown = &kept
			continue
		}
		shape.Known = append(shape.Known, kept)
	}
	slices.SortFunc(shape.Known, func(a, b outline.Member) int { return strings.Compare(a.Name, b.Name) })
	return shape
}
