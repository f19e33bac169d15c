package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// access limits requests as S3 does: a rule demands a header of them, or the token of temporary credentials. Signatures
// are checked by the server, and cover the token.
//
// The proxy is also a Security Token Service, whose AssumeRole hands out the server's own keys with a new token. Real
// clients renew credentials minutes before the service says that they end; `stated_ms` is what it says, and
// `token_ms` is how long a token is good in fact, so that tests need not wait for minutes.
type access struct {
	accessKey, secretKey string

	mutex   sync.Mutex
	rules   accessRules
	tokens  map[string]*token
	refused int
}

type accessRules struct {
	Rules    []accessRule `json:"rules"`
	TokenMs  int64        `json:"token_ms"`  // 0: until they are revoked
	StatedMs int64        `json:"stated_ms"` // 0: an hour
}

// An accessRule refuses requests to a bucket, of the operations or of all, which lack the header or have another value
// than `value`, if it is given. A token that is not good any more is refused with the code ExpiredToken.
type accessRule struct {
	Bucket     string   `json:"bucket"`
	Operations []string `json:"operations"`
	Header     string   `json:"header"`
	Value      string   `json:"value"`
	Status     int      `json:"status"`
	Code       string   `json:"code"`
}

type token struct {
	until time.Time // zero: until it is revoked
	used  bool
}

const (
	tokenHeader  = "X-Amz-Security-Token"
	stsNamespace = "https://sts.amazonaws.com/doc/2011-06-15/"
)

func newAccess(accessKey, secretKey string) *access {
	return &access{accessKey: accessKey, secretKey: secretKey, tokens: map[string]*token{}}
}

func (a *access) handle(mux *http.ServeMux) {
	mux.HandleFunc("/__bed/access", a.setRules)
	mux.HandleFunc("/__bed/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, a.issue()) })
	mux.HandleFunc("/__bed/revoke", func(http.ResponseWriter, *http.Request) { a.revoke() })
	mux.HandleFunc("/__bed/tokens", a.writeTokens)
}

func (a *access) setRules(w http.ResponseWriter, r *http.Request) {
	var rules accessRules
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&rules)
	for _, rule := range rules.Rules {
		if err == nil && (rule.Bucket == "" || rule.Header == "" || rule.Status < 400 || rule.Status > 599 || rule.Code == "") {
			err = errors.New("a rule has a bucket, a header, the status of an error, and its code")
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.rules, a.refused = rules, 0
}

// issue makes a token.
func (a *access) issue() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random)
	name := "token-" + hex.EncodeToString(random)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	issued := &token{}
	if a.rules.TokenMs > 0 {
		issued.until = time.Now().Add(time.Duration(a.rules.TokenMs) * time.Millisecond)
	}
	a.tokens[name] = issued
	return name
}

// revoke ends all tokens that have been issued.
func (a *access) revoke() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, issued := range a.tokens {
		issued.until = time.Unix(0, 1)
	}
}

func (a *access) writeTokens(w http.ResponseWriter, _ *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	used := 0
	for _, issued := range a.tokens {
		if issued.used {
			used++
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]int{"issued": len(a.tokens), "used": used, "refused": a.refused})
}

// refusal is the rule that refuses a request, and the code of its error; nil if it is allowed.
func (a *access) refusal(operation string, r *http.Request) (*accessRule, string) {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for i := range a.rules.Rules {
		rule := &a.rules.Rules[i]
		if rule.Bucket != bucket || len(rule.Operations) > 0 && !slices.Contains(rule.Operations, operation) {
			continue
		}
		if code := a.lacks(rule, r.Header.Get(rule.Header)); code != "" {
			a.refused++
			return rule, code
		}
	}
	return nil, ""
}

// lacks is the code of the error if a header's value does not satisfy a rule.
func (a *access) lacks(rule *accessRule, value string) string {
	if value == "" || rule.Value != "" && rule.Value != value {
		return rule.Code
	}
	if !strings.EqualFold(rule.Header, tokenHeader) {
		return ""
	}
	issued := a.tokens[value]
	switch {
	case issued == nil:
		return "InvalidToken"
	case !issued.until.IsZero() && time.Now().After(issued.until):
		return "ExpiredToken"
	}
	issued.used = true
	return ""
}

// assumeRole answers as the Security Token Service does. Only the access key of its client is checked.
func (a *access) assumeRole(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/xml")
	if a.accessKey == "" || !strings.Contains(r.Header.Get("Authorization"), "Credential="+a.accessKey+"/") {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `<ErrorResponse xmlns="%s"><Error><Type>Sender</Type><Code>InvalidClientTokenId</Code>`+
			`<Message>The security token included in the request is invalid.</Message></Error></ErrorResponse>`, stsNamespace)
		return
	}
	a.mutex.Lock()
	stated := time.Duration(a.rules.StatedMs) * time.Millisecond
	a.mutex.Unlock()
	if stated == 0 {
		stated = time.Hour
	}
	fmt.Fprintf(w, `<AssumeRoleResponse xmlns="%s"><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId>`+
		`<SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials>`+
		`</AssumeRoleResult></AssumeRoleResponse>`,
		stsNamespace, a.accessKey, a.secretKey, a.issue(), time.Now().Add(stated).UTC().Format("2006-01-02T15:04:05.000Z"))
}
