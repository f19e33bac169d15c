package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

const tokenRule = `{"bucket": "b", "header": "X-Amz-Security-Token", "status": 403, "code": "AccessDenied"}`

func (b *bed) limit(rules string) {
	b.Helper()
	if status, answer := b.do("POST", "/__bed/access", rules); status != 200 {
		b.Fatalf("%s: %d %s", rules, status, answer)
	}
}

func (b *bed) expect(status int, code string, path string, header ...string) {
	b.Helper()
	response, answer, _ := b.get("GET", path, header...)
	if response == nil || response.StatusCode != status || !strings.Contains(answer, code) {
		b.Errorf("%s %v: %v %q, not %d %s", path, header, response, answer, status, code)
	}
}

// signed are the headers of a request that is signed with these credentials, or with another secret.
func (b *bed) signed(path string, with *credentials, secretKey string) []string {
	r := httptest.NewRequest("GET", b.url+path, nil)
	r.Header.Set(tokenHeader, with.SessionToken)
	sum := &signature{with.AccessKey, "20260101/us-east-1/s3/aws4_request", []string{"host", "x-amz-security-token"}, ""}
	return []string{tokenHeader, with.SessionToken, "Authorization", "AWS4-HMAC-SHA256 Credential=" + with.AccessKey + "/" + sum.scope +
		", SignedHeaders=host;x-amz-security-token, Signature=" + sum.with(secretKey, r)}
}

func (b *bed) credentials() *credentials {
	_, text := b.do("POST", "/__bed/credentials", "")
	made := &credentials{}
	if err := json.Unmarshal([]byte(text), made); err != nil {
		b.Fatal(err, text)
	}
	return made
}

func TestCredentialsAreGoodUntilTheyAreRevoked(t *testing.T) {
	b := newBed(t)
	b.limit(`{"rules": [` + tokenRule + `]}`)
	made := b.credentials()
	b.expect(200, "", "/b/k", b.signed("/b/k", made, made.SecretKey)...)
	b.expect(200, "", "/other/k")
	b.expect(403, "AccessDenied", "/b/k")
	b.expect(403, "InvalidToken", "/b/k", tokenHeader, "made-up")
	b.expect(403, "InvalidAccessKeyId", "/b/k", tokenHeader, made.SessionToken)
	b.expect(403, "SignatureDoesNotMatch", "/b/k", b.signed("/b/k", made, "another")...)
	b.expect(403, "SignatureDoesNotMatch", "/b/k", b.signed("/b/other", made, made.SecretKey)...)
	b.do("POST", "/__bed/revoke?bucket=other", "")
	b.expect(200, "", "/b/k", b.signed("/b/k", made, made.SecretKey)...)
	b.do("POST", "/__bed/revoke?bucket=b", "")
	b.expect(403, "ExpiredToken", "/b/k", b.signed("/b/k", made, made.SecretKey)...)
	if _, counts := b.do("GET", "/__bed/tokens", ""); counts != `{"issued":1,"refused":6,"used":1}`+"\n" {
		t.Error(counts)
	}
	b.limit(`{}`)
	b.expect(200, "", "/b/k")
}

func TestCredentialsEndWithTheirTime(t *testing.T) {
	b := newBed(t)
	b.limit(`{"rules": [` + tokenRule + `], "token_ms": 1}`)
	for made := b.credentials(); ; {
		if response, answer, _ := b.get("GET", "/b/k", b.signed("/b/k", made, made.SecretKey)...); response.StatusCode != 200 {
			if !strings.Contains(answer, "ExpiredToken") {
				t.Error(answer)
			}
			return
		}
	}
}

func TestARuleConcernsOperationsAndValues(t *testing.T) {
	b := newBed(t)
	b.limit(`{"rules": [{"bucket": "b", "operations": ["GetObject"], "header": "X-Amz-Request-Payer", "value": "requester", "status": 403, "code": "AccessDenied"}]}`)
	b.expect(200, "", "/b?list-type=2")
	b.expect(403, "AccessDenied", "/b/k", "X-Amz-Request-Payer", "other")
	b.expect(200, "", "/b/k", "X-Amz-Request-Payer", "requester")
}

func TestAssumeRoleHandsOutCredentials(t *testing.T) {
	a := newAccess("key", "secret")
	assume := func(credential string) *httptest.ResponseRecorder {
		request := httptest.NewRequest("POST", "/", strings.NewReader("Action=AssumeRole"))
		request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+credential+"/20260101/us-east-1/sts/aws4_request, Signature=0")
		if operationOf(request) != "AssumeRole" {
			t.Error(operationOf(request))
		}
		answer := httptest.NewRecorder()
		a.assumeRole(answer, request)
		return answer
	}
	if answer := assume("key2"); answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), "InvalidClientTokenId") {
		t.Error(answer.Code, answer.Body)
	}
	found := regexp.MustCompile("<AccessKeyId>(.*)</AccessKeyId><SecretAccessKey>(.*)</SecretAccessKey><SessionToken>(.*)</SessionToken>").
		FindStringSubmatch(assume("key").Body.String())
	if found == nil || a.issued[found[3]] == nil || a.issued[found[3]].AccessKey != found[1] || a.issued[found[3]].SecretKey != found[2] {
		t.Error(found)
	}
}

func TestWhatIsNoRuleIsRefused(t *testing.T) {
	b := newBed(t)
	for _, rules := range []string{`x`, `{"rules": [{"bucket": "b"}]}`, `{"rulez": []}`,
		`{"rules": [{"bucket": "b", "header": "x", "status": 200, "code": "OK"}]}`} {
		if status, _ := b.do("POST", "/__bed/access", rules); status != 400 {
			t.Errorf("%s: status %d", rules, status)
		}
	}
}
