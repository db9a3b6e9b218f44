package wire

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-dev/weir/collector/event"
)

// Part is a part of an entry that is sealed, under keys of its own that are dropped before the entry goes.
type Part uint8

// The parts.
const (
	// Device is what tells of the visitor's device: IP address and user agent.
	Device Part = iota
	// Identity is what tells who the visitor is: everything that [event.Event.DropIdentity] takes away.
	Identity
	// PartCount is how many there are.
	PartCount
)

// String returns the part's name in entry.proto.
func (p Part) String() string { return [...]string{"device", "identity"}[p] }

// Period is for how long a part's key is used: events of that long share one.
func (p Part) Period() time.Duration { return [...]time.Duration{time.Hour, 24 * time.Hour}[p] }

// fieldOf are the numbers of the parts' fields.
var fieldOf = [PartCount]protowire.Number{fieldDevice, fieldIdentity}

// SecretSize is how many bytes a key is made of, all of them random.
const SecretSize = 32

// Key seals and opens parts of one kind and period. It is safe for concurrent use.
type Key struct {
	parts cipher.AEAD
	masks cipher.Block
}

// NewKey makes a key. It fails where the secret has not [SecretSize] bytes.
func NewKey(secret []byte) (*Key, error) {
	if len(secret) != SecretSize {
		return nil, fmt.Errorf("the secret of a key has %d bytes and must have %d", len(secret), SecretSize)
	}
	const half = 32 // AES-256
	both, err := hkdf.Expand(sha256.New, secret, "weir sealed parts", 2*half)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(both[:half])
	if err != nil {
		return nil, err
	}
	key := new(Key)
	if key.parts, err = cipher.NewGCMWithTagSize(block, tagSize); err != nil {
		return nil, err
	}
	key.masks, err = aes.NewCipher(both[half:])
	return key, err
}

// PeriodKey is the key of one period: of the part's period of this number since 1970.
type PeriodKey struct {
	Period uint64
	*Key
}

// Mask hides a person: theirs is XORed with it. The zero Mask hides nothing.
type Mask event.Person

// mask returns the one of the event whose identity is sealed with a nonce.
func (k *Key) mask(nonce []byte) Mask {
	var block [aes.BlockSize]byte
	copy(block[:], nonce)
	k.masks.Encrypt(block[:], block[:])
	return Mask(block[:])
}

const (
	nonceSize = 12
	tagSize   = 12 // what is given for a few bytes: a forgery passes once in 2^96
	// headSize is how much of an entry comes before its sealed parts: the version, 1 byte and its tag, and the delivery id.
	headSize = 2 + 2 + len(uuid.UUID{})
)

// Parts is an event as it is stored: what stands in the clear, and the parts that are sealed before it is stored, each as
// fields of Entry; nil where there is nothing to seal.
type Parts struct {
	Entry  []byte
	Sealed [PartCount][]byte
}

// Split parts an event. identity says that what tells whose it is is sealed too.
func Split(e *event.Event, identity bool) Parts {
	var parts Parts
	open := *e
	open.Context.IP, open.Context.UserAgent = "", ""
	parts.Sealed[Device] = appendContext(nil, &event.Context{IP: e.Context.IP, UserAgent: e.Context.UserAgent})
	if identity {
		open.DropIdentity()
		whose := event.Context{ClickIDs: e.Context.ClickIDs}
		if open.Context.PageURL != e.Context.PageURL {
			whose.PageURL = e.Context.PageURL
		}
		if open.Context.Referrer != e.Context.Referrer {
			whose.Referrer = e.Context.Referrer
		}
		parts.Sealed[Identity] = appendContext(appendIdentity(nil, e), &whose)
	}
	parts.Entry = Encode(&open)
	return parts
}

// Seal appends to b the entry with its parts sealed, each under its key, which must be there where the part is; and returns
// what the event's person is to be masked with.
func (p *Parts) Seal(b []byte, keys [PartCount]PeriodKey) ([]byte, Mask) {
	var mask Mask
	if p.Sealed[Device] == nil && p.Sealed[Identity] == nil {
		return append(b, p.Entry...), mask
	}
	b = append(b, p.Entry[:headSize]...)
	id := p.Entry[headSize-len(uuid.UUID{}) : headSize]
	for part, fields := range p.Sealed {
		if fields == nil {
			continue
		}
		var head [binary.MaxVarintLen64 + nonceSize]byte
		period := binary.AppendUvarint(head[:0], keys[part].Period)
		nonce := head[len(period) : len(period)+nonceSize]
		rand.Read(nonce) //nolint:errcheck // it never fails
		b = protowire.AppendTag(b, fieldOf[part], protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(len(period)+nonceSize+len(fields)+tagSize))
		b = append(append(b, period...), nonce...)
		b = keys[part].parts.Seal(b, nonce, fields, id)
		if Part(part) == Identity {
			mask = keys[part].mask(nonce)
		}
	}
	return append(b, p.Entry[headSize:]...), mask
}

// Box is a sealed part of an entry.
type Box struct {
	Part Part
	// Period is that of the key that the box is sealed under.
	Period uint64
	// nonce and fields are as they stand in the entry.
	nonce, fields []byte
}

// Boxes returns the sealed parts of an entry; none where it has none or is none.
func Boxes(entry []byte) []Box {
	if len(entry) < headSize || entry[headSize-len(uuid.UUID{})-1] != byte(len(uuid.UUID{})) {
		return nil
	}
	var boxes []Box
	for rest := entry[headSize:]; ; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 || kind != protowire.BytesType || number != fieldDevice && number != fieldIdentity || len(boxes) == int(PartCount) {
			return boxes
		}
		content, m := protowire.ConsumeBytes(rest[n:])
		if m < 0 {
			return boxes
		}
		rest = rest[n+m:]
		period, at := binary.Uvarint(content)
		if at <= 0 || len(content) < at+nonceSize+tagSize {
			return boxes
		}
		boxes = append(boxes, Box{Part(number - fieldDevice), period, content[at : at+nonceSize], content[at+nonceSize:]})
	}
}

// ErrOtherKey says that a part was sealed under another key than the one that was given for its period, or changed.
var ErrOtherKey = errors.New("a sealed part does not open with the key of its period")

// Open returns the entry with the parts opened that key has a key for, to be read by [Decode]; it is entry itself where
// there are none. key returns nil where a key is gone. With [ErrOtherKey] the parts are opened that can be.
func Open(entry []byte, key func(Part, uint64) *Key) ([]byte, error) {
	var err error
	opened := entry
	for _, box := range Boxes(entry) {
		k := key(box.Part, box.Period)
		if k == nil {
			continue
		}
		fields, failed := k.parts.Open(nil, box.nonce, box.fields, entry[headSize-len(uuid.UUID{}):headSize])
		if failed != nil {
			err = ErrOtherKey
			continue
		}
		// Behind all others, since of a field that comes twice the last one counts.
		opened = append(opened[:len(opened):len(opened)], fields...)
		if box.Part == Identity {
			opened = appendPerson(opened, entry, k.mask(box.nonce))
		}
	}
	return opened, err
}

// appendPerson appends the person whom an entry has masked.
func appendPerson(b, entry []byte, mask Mask) []byte {
	found, masked := false, uint64(0)
	broken := eachField(entry, func(f field) error {
		if f.number == fieldMaskedPerson && f.kind == protowire.Fixed64Type {
			found, masked = true, f.fixed64
		}
		return nil
	})
	if !found || broken != nil { // which Decode says
		return b
	}
	var person event.Person
	binary.LittleEndian.PutUint64(person[:], masked)
	subtle.XORBytes(person[:], person[:], mask[:])
	return append(protowire.AppendTag(b, fieldPerson, protowire.Fixed64Type), person[:]...)
}
