package adapter

import (
	"crypto/sha256"

	"github.com/weir-dev/weir/collector/event"
)

// personData are a person's hashes and device, by the names that Meta, Pinterest and Snapchat have in common.
type personData struct {
	Email           []string `json:"em,omitempty"`
	Phone           []string `json:"ph,omitempty"`
	FirstName       []string `json:"fn,omitempty"`
	LastName        []string `json:"ln,omitempty"`
	City            []string `json:"ct,omitempty"`
	State           []string `json:"st,omitempty"`
	Zip             []string `json:"zp,omitempty"`
	Country         []string `json:"country,omitempty"`
	DateOfBirth     []string `json:"db,omitempty"`
	Gender          []string `json:"ge,omitempty"`
	ExternalID      []string `json:"external_id,omitempty"`
	ClientIPAddress string   `json:"client_ip_address,omitzero"`
	ClientUserAgent string   `json:"client_user_agent,omitzero"`
}

// personOf is all of that of an event, with the names in the platform's variants.
func personOf(e *Event, firstName, lastName event.Variant) personData {
	return personData{
		Email:           e.contacts(event.EmailLower, anyNumber),
		Phone:           e.contacts(event.PhoneDigits, anyNumber),
		FirstName:       hashes(e.User.Get(firstName)),
		LastName:        hashes(e.User.Get(lastName)),
		City:            hashes(e.User.Get(event.City)),
		State:           hashes(e.User.Get(event.State)),
		Zip:             hashes(e.User.Get(event.Zip)),
		Country:         e.countryHash(),
		DateOfBirth:     hashes(e.User.Get(event.DateOfBirth)),
		Gender:          hashes(e.User.Get(event.Gender)),
		ExternalID:      e.externalIDs(),
		ClientIPAddress: publicIP(e.Context.IP),
		ClientUserAgent: e.Context.UserAgent,
	}
}

// noGender is the hash of n: Meta and Snapchat know f and m alone.
var noGender = event.Hash(sha256.Sum256([]byte("n")))

// withoutOtherGenders leaves out a gender that is neither f nor m.
func (p *personData) withoutOtherGenders(e *Event) {
	if e.User.Get(event.Gender) == noGender {
		p.Gender = nil
	}
}
