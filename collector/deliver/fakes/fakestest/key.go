// Package fakestest makes credentials that fakes take, for tests.
package fakestest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"sync"
)

// ServiceAccountKey is the JSON key of a service account of Google's, the same in all of a process and another in each.
var ServiceAccountKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // a test has no other way to begin
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "weir@project-for-tests.iam.gserviceaccount.com", "private_key_id": "key-id-for-tests",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri":   "https://oauth2.googleapis.com/token",
	})
	if err != nil {
		panic(err)
	}
	return string(text)
})
