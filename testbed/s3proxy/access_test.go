package main

import (
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

func TestATokenIsGoodUntilItIsRevoked(t *testing.T) {
	b := newBed(t)
	b.limit(`{"rules": [` + tokenRule + `]}`)
	_, token := b.do("POST", "/__bed/token", "")
	token = strings.TrimSpace(token)
	b.expect(200, "", "/b/k", tokenHeader, token)
	b.expect(200, "", "/other/k")
	b.expect(403, "AccessDenied", "/b/k")
	b.expect(403, "InvalidToken", "/b/k", tokenHeader, "made-up")
	b.do("POST", "/__bed/revoke", "")
	b.expect(403, "ExpiredToken", "/b/k", tokenHeader, token)
	if _, told := b.do("GET", "/__bed/tokens", ""); told != `{"issued":1,"refused":3,"used":1}`+"\n" {
		t.Error(told)
	}
	b.limit(`{}`)
	b.expect(200, "", "/b/k")
}

func TestATokenEndsWithItsTime(t *testing.T) {
	b := newBed(t)
	b.limit(`{"rules": [` + tokenRule + `], "token_ms": 1}`)
	_, token := b.do("POST", "/__bed/token", "")
	for path := "/b/k"; ; {
		if response, answer, _ := b.get("GET", path, tokenHeader, strings.TrimSpace(token)); response.StatusCode != 200 {
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

func TestAssumeRoleHandsOutKeysAndATokenThatIsGood(t *testing.T) {
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
	found := regexp.MustCompile("<AccessKeyId>key</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>(.*)</SessionToken>").
		FindStringSubmatch(assume("key").Body.String())
	if found == nil || a.tokens[found[1]] == nil {
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
