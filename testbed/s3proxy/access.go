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

// access restricts requests as S3 does: a rule requires a header, which may be the token of temporary credentials.
//
// The server behind the proxy does not support temporary credentials. The proxy makes them, checks the signatures of
// requests with a token, and signs these again with the server's keys. It is also a Security Token Service, whose
// AssumeRole issues them. Real clients renew credentials minutes before their stated expiry; `stated_ms` is the stated
// lifetime, and `token_ms` the actual one, so that tests need not wait for minutes.
type access struct {
	accessKey, secretKey string

	mutex   sync.Mutex
	rules   accessRules
	issued  map[string]*credentials
	refused int
}

type accessRules struct {
	Rules    []accessRule `json:"rules"`
	TokenMs  int64        `json:"token_ms"`  // 0: until they are revoked
	StatedMs int64        `json:"stated_ms"` // 0: an hour
}

// An accessRule refuses requests to a bucket, for some operations or all, that lack the header or have a value other
// than `value`, if it is given. Invalid tokens and signatures are refused with S3's error codes.
type accessRule struct {
	Bucket     string   `json:"bucket"`
	Operations []string `json:"operations"`
	Header     string   `json:"header"`
	Value      string   `json:"value"`
	Status     int      `json:"status"`
	Code       string   `json:"code"`
}

// credentials are temporary ones; a map finds them by their token.
type credentials struct {
	AccessKey    string `json:"access_key"`
	SecretKey    string `json:"secret_key"`
	SessionToken string `json:"session_token"`

	until  time.Time // zero: until they are revoked
	usedOn []string  // buckets
}

const (
	tokenHeader  = "X-Amz-Security-Token"
	stsNamespace = "https://sts.amazonaws.com/doc/2011-06-15/"
)

func newAccess(accessKey, secretKey string) *access {
	return &access{accessKey: accessKey, secretKey: secretKey, issued: map[string]*credentials{}}
}

func (a *access) handle(mux *http.ServeMux) {
	mux.HandleFunc("/__bed/access", a.setRules)
	mux.HandleFunc("/__bed/credentials", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(a.issue()) })
	mux.HandleFunc("/__bed/revoke", func(_ http.ResponseWriter, r *http.Request) { a.revoke(r.URL.Query().Get("bucket")) })
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

// issue makes credentials.
func (a *access) issue() *credentials {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	made := &credentials{AccessKey: "temporary-" + random(8), SecretKey: "secret-" + random(16), SessionToken: "token-" + random(16)}
	if a.rules.TokenMs > 0 {
		made.until = time.Now().Add(time.Duration(a.rules.TokenMs) * time.Millisecond)
	}
	a.issued[made.SessionToken] = made
	return made
}

func random(count int) string {
	bytes := make([]byte, count)
	_, _ = rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

// revoke ends the credentials that have been used for a bucket.
func (a *access) revoke(bucket string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, issued := range a.issued {
		if slices.Contains(issued.usedOn, bucket) {
			issued.until = time.Unix(0, 1)
		}
	}
}

func (a *access) writeTokens(w http.ResponseWriter, _ *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	used := 0
	for _, issued := range a.issued {
		if len(issued.usedOn) > 0 {
			used++
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]int{"issued": len(a.issued), "used": used, "refused": a.refused})
}

// admit is the rule that refuses a request, and the code of its error; nil if it is allowed. A request with a token is
// signed again.
func (a *access) admit(operation string, r *http.Request) (*accessRule, string) {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for i := range a.rules.Rules {
		rule := &a.rules.Rules[i]
		if rule.Bucket != bucket || len(rule.Operations) > 0 && !slices.Contains(rule.Operations, operation) {
			continue
		}
		if code := a.lacks(rule, r); code != "" {
			a.refused++
			return rule, code
		}
	}
	if issued := a.issued[r.Header.Get(tokenHeader)]; issued != nil {
		if !slices.Contains(issued.usedOn, bucket) {
			issued.usedOn = append(issued.usedOn, bucket)
		}
		signatureOf(r).signAnew(a.accessKey, a.secretKey, r)
	}
	return nil, ""
}

// lacks is the code of the error if a request does not satisfy a rule.
func (a *access) lacks(rule *accessRule, r *http.Request) string {
	value := r.Header.Get(rule.Header)
	if value == "" || rule.Value != "" && rule.Value != value {
		return rule.Code
	}
	if !strings.EqualFold(rule.Header, tokenHeader) {
		return ""
	}
	issued, signed := a.issued[value], signatureOf(r)
	switch {
	case issued == nil:
		return "InvalidToken"
	case !issued.until.IsZero() && time.Now().After(issued.until):
		return "ExpiredToken"
	case signed == nil || signed.accessKey != issued.AccessKey:
		return "InvalidAccessKeyId"
	case !signed.isBy(issued.SecretKey, r):
		return "SignatureDoesNotMatch"
	}
	return ""
}

// assumeRole answers as the Security Token Service does. Of its client's credentials, only the access key is checked.
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
	made := a.issue()
	fmt.Fprintf(w, `<AssumeRoleResponse xmlns="%s"><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId>`+
		`<SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials>`+
		`</AssumeRoleResult></AssumeRoleResponse>`,
		stsNamespace, made.AccessKey, made.SecretKey, made.SessionToken, time.Now().Add(stated).UTC().Format("2006-01-02T15:04:05.000Z"))
}
