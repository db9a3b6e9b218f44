package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	testSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

	emailHash = "8c87b489ce35cf2e2f39f80e282cb2e804932a56a213983eeeb428407d43b52d"
	goodBody  = `{"type":"purchase","timestamp":"2026-11-20T10:00:00Z","data":{"event_id":"A-1","value":49.9,"currency":"EUR",` +
		`"client_id":"1234567.890123","user":{"email":"` + emailHash + `","phone":null,"first_name":null}}}`
)

func TestHandler(t *testing.T) {
	tests := map[string]struct {
		method     string
		body       string
		secret     string
		age        time.Duration
		unsigned   bool
		wantStatus int
		wantLine   string
	}{
		"a signed and hashed delivery is taken and described": {
			body: goodBody, wantStatus: http.StatusNoContent,
			wantLine: "receiver: purchase · id A-1 · 49.9 EUR · email 8c87b489… · signature verified · no raw personal data\n",
		},
		"an event without money is described without it": {
			body: `{"type":"pageview","data":{"event_id":"A-2","value":null,"currency":null,"user":{}}}`, wantStatus: http.StatusNoContent,
			wantLine: "receiver: pageview · id A-2 · signature verified · no raw personal data\n",
		},
		"a signature by another secret is refused": {
			body: goodBody, secret: otherSecret, wantStatus: http.StatusUnauthorized,
			wantLine: "receiver: REJECTED: unable to verify payload, err: no matching signature found\n",
		},
		"a delivery without signature is refused": {
			body: goodBody, unsigned: true, wantStatus: http.StatusUnauthorized,
			wantLine: "receiver: REJECTED: unable to verify payload, err: missing required headers\n",
		},
		"a signature of six minutes ago is refused": {
			body: goodBody, age: 6 * time.Minute, wantStatus: http.StatusUnauthorized,
			wantLine: "receiver: REJECTED: unable to verify payload, err: message timestamp too old\n",
		},
		"a signature of four minutes ago is good": {
			body: goodBody, age: 4 * time.Minute, wantStatus: http.StatusNoContent,
			wantLine: "receiver: purchase · id A-1 · 49.9 EUR · email 8c87b489… · signature verified · no raw personal data\n",
		},
		"a raw e-mail address is refused wherever it stands and not repeated": {
			body:       `{"type":"purchase","data":{"event_id":"A-3","user":{},"contents":[{"name":"for jane@example.com"}]}}`,
			wantStatus: http.StatusUnprocessableEntity, wantLine: "receiver: REJECTED: raw personal data in data.contents.0.name\n",
		},
		"a raw phone number is refused": {
			body:       `{"type":"purchase","data":{"event_id":"A-4","user":{"phone":"+14155550123"}}}`,
			wantStatus: http.StatusUnprocessableEntity, wantLine: "receiver: REJECTED: raw personal data in data.user.phone\n",
		},
		"a first name in the clear is refused": {
			body:       `{"type":"purchase","data":{"event_id":"A-5","user":{"first_name":"Jane"}}}`,
			wantStatus: http.StatusUnprocessableEntity, wantLine: "receiver: REJECTED: data.user.first_name must be null or 64 lower-case hex digits\n",
		},
		"a body without an event is refused": {
			body: `{"type":"purchase"}`, wantStatus: http.StatusUnprocessableEntity,
			wantLine: "receiver: REJECTED: type and data.event_id must be there\n",
		},
		"a body that is no JSON is refused": {
			body: `<html>`, wantStatus: http.StatusUnprocessableEntity, wantLine: "receiver: REJECTED: the body is not a webhook's JSON\n",
		},
		"a GET is answered with the method that is right": {method: http.MethodGet, wantStatus: http.StatusMethodNotAllowed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			// The bubble's clock stands still, so that ages are exact.
			synctest.Test(t, func(t *testing.T) {
				verifier, err := newVerifier(testSecret)
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				recorder := httptest.NewRecorder()
				request := httptest.NewRequestWithContext(t.Context(), orDefault(tt.method, http.MethodPost), "/hook", strings.NewReader(tt.body))
				if !tt.unsigned {
					sign(t, request, tt.body, orDefault(tt.secret, testSecret), time.Now().Add(-tt.age))
				}
				(&handler{verifier: verifier, out: &out}).ServeHTTP(recorder, request)
				if recorder.Code != tt.wantStatus {
					t.Errorf("status = %d, want %d", recorder.Code, tt.wantStatus)
				}
				if got := out.String(); got != tt.wantLine {
					t.Errorf("printed %q, want %q", got, tt.wantLine)
				}
			})
		})
	}
}

func sign(t *testing.T, request *http.Request, body, secret string, at time.Time) {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign("msg_1", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(standardwebhooks.HeaderWebhookID, "msg_1")
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

func TestRunServesUntilItsContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ready := filepath.Join(t.TempDir(), "ready")
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--listen", "127.0.0.1:0", "--ready-file", ready}, testSecret, &out)
	}()

	deadline := time.After(10 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("ended early: %v", err)
		case <-deadline:
			t.Fatal("not ready after 10 s")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run = %v, want nil", err)
	}
	if got, want := out.String(), "receiver: listening on http://127.0.0.1:"; !strings.HasPrefix(got, want) {
		t.Errorf("printed %q, want it to begin with %q", got, want)
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })

	tests := map[string]struct {
		args   []string
		secret string
		want   string
	}{
		"no secret": {
			secret: "", want: "WEIR_WEBHOOK_SECRET must hold the platform's signing secret, whsec_ and base64",
		},
		"a secret that is none is not repeated": {
			secret: "whsec_!!", want: "WEIR_WEBHOOK_SECRET is no signing secret; it must be whsec_ and base64",
		},
		"a port that another program has": {
			secret: testSecret, args: []string{"--listen", taken.Addr().String()},
			want: taken.Addr().String() + " is in use by process",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), tt.args, tt.secret, &bytes.Buffer{})
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("run = %v, want %q", err, tt.want)
			}
		})
	}
}
