package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Signatures of requests, version 4, in the Authorization header. Bodies are covered if X-Amz-Content-Sha256 has their
// hash; those whose chunks are signed one by one cannot be signed again.
type signature struct {
	accessKey, scope string
	headers          []string // their names, in lower case
	value            string
}

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/,]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)$`)

// signatureOf is the signature of a request; nil if it has none.
func signatureOf(r *http.Request) *signature {
	found := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if found == nil {
		return nil
	}
	return &signature{found[1], found[2], strings.Split(found[3], ";"), found[4]}
}

// isBy is whether the signature was made with this secret.
func (s *signature) isBy(secretKey string, r *http.Request) bool {
	return hmac.Equal([]byte(s.value), []byte(s.with(secretKey, r)))
}

// signAnew signs a request with other keys and without its token, for a server that does not support tokens.
func (s *signature) signAnew(accessKey, secretKey string, r *http.Request) {
	r.Header.Del(tokenHeader)
	other := &signature{accessKey: accessKey, scope: s.scope}
	for _, name := range s.headers {
		if name != strings.ToLower(tokenHeader) {
			other.headers = append(other.headers, name)
		}
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+accessKey+"/"+other.scope+
		", SignedHeaders="+strings.Join(other.headers, ";")+", Signature="+other.with(secretKey, r))
}

func (s *signature) with(secretKey string, r *http.Request) string {
	key := []byte("AWS4" + secretKey)
	for _, part := range strings.Split(s.scope, "/") {
		key = keyed(key, part)
	}
	hash := sha256.Sum256([]byte(s.canonical(r)))
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + s.scope + "\n" + hex.EncodeToString(hash[:])
	return hex.EncodeToString(keyed(key, text))
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// canonical is the request in the form that is signed.
func (s *signature) canonical(r *http.Request) string {
	lines := []string{r.Method, r.URL.EscapedPath(), canonicalQuery(r.URL.Query())}
	for _, name := range s.headers {
		lines = append(lines, name+":"+signedValue(name, r))
	}
	return strings.Join(append(lines, "", strings.Join(s.headers, ";"), r.Header.Get("X-Amz-Content-Sha256")), "\n")
}

func signedValue(name string, r *http.Request) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	values := slices.Clone(r.Header.Values(name))
	for i, value := range values {
		values[i] = strings.Join(strings.Fields(value), " ")
	}
	return strings.Join(values, ",")
}

func canonicalQuery(query url.Values) string {
	parts := []string{}
	for name, values := range query {
		for _, value := range values {
			parts = append(parts, escaped(name)+"="+escaped(value))
		}
	}
	sort.Strings(parts)
	return strings.Join(parts, "&")
}

func escaped(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
