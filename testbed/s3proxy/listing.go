package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

const maxKeysOfPage = 1000

// A listing is a ListObjectsV2 request to a synthetic bucket. Its remaining keys are a range of indices; a continuation
// token is that range.
type listing struct {
	bucket     *syntheticBucket
	query      url.Values
	prefix     string
	delimiter  []byte
	maxKeys    int
	first, end int
}

func newListing(bucket *syntheticBucket, query url.Values) (*listing, error) {
	l := &listing{bucket: bucket, query: query, prefix: query.Get("prefix"), delimiter: []byte(query.Get("delimiter")), maxKeys: maxKeysOfPage}
	if text := query.Get("max-keys"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 0 {
			return nil, errors.New("max-keys: a number")
		}
		l.maxKeys = min(number, maxKeysOfPage)
	}
	if encoding := query.Get("encoding-type"); encoding != "" && encoding != "url" {
		return nil, errors.New("Invalid Encoding Method specified in Request")
	}
	if query.Has("continuation-token") {
		return l, l.resume(query.Get("continuation-token"))
	}
	l.start(query.Get("start-after"))
	return l, nil
}

// As in S3, a token has characters that a client must encode in a URL.
const tokenFormat = "1+/%d-%d="

func (l *listing) token() string { return fmt.Sprintf(tokenFormat, l.first, l.end) }

func (l *listing) resume(token string) error {
	_, err := fmt.Sscanf(token, tokenFormat, &l.first, &l.end)
	if err != nil || token != l.token() || l.first < 0 || l.first > l.end || l.end > l.bucket.keys.size() {
		return errors.New("The continuation token provided is incorrect")
	}
	return nil
}

// start sets the range to the keys with the prefix that are after `startAfter`. If that is a common prefix, its keys are
// not named again.
func (l *listing) start(startAfter string) {
	keys := &l.bucket.keys
	l.first, _ = keys.search(l.prefix)
	if l.end = l.first; l.first == keys.size() {
		return
	}
	if key := keys.appendKey(nil, l.first); strings.HasPrefix(string(key), l.prefix) {
		_, l.end = keys.sharing(l.first, len(l.prefix))
	}
	after, isKey := keys.search(startAfter)
	if isKey {
		after++
	}
	if startAfter != "" && l.first <= after && after < l.end {
		key := keys.appendKey(nil, after)
		if strings.HasPrefix(string(key), startAfter) && l.cut(key) == len(startAfter) {
			_, after = keys.sharing(after, len(startAfter))
		}
	}
	l.first = min(max(l.first, after), l.end)
}

// cut is the length of the common prefix that stands for the key; 0: the key stands for itself.
func (l *listing) cut(key []byte) int {
	if len(l.delimiter) > 0 {
		if at := bytes.Index(key[len(l.prefix):], l.delimiter); at >= 0 {
			return len(l.prefix) + at + len(l.delimiter)
		}
	}
	return 0
}

// A page is an unfinished reply. S3 sends the head first, which needs the number of keys, and common prefixes after all
// keys.
type page struct {
	head           bytes.Buffer
	keys, prefixes []byte
	count          int
	key            []byte // scratch
}

var pages = sync.Pool{New: func() any { return &page{} }}

func (b *syntheticBucket) list(w http.ResponseWriter, r *http.Request) {
	l, err := newListing(b, r.URL.Query())
	if err != nil {
		writeError(w, r, http.StatusBadRequest, "InvalidArgument", err.Error())
		return
	}
	p := pages.Get().(*page)
	defer pages.Put(p)
	p.fill(l)
	const tail = "</ListBucketResult>"
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(p.head.Len()+len(p.keys)+len(p.prefixes)+len(tail)))
	for _, part := range [][]byte{p.head.Bytes(), p.keys, p.prefixes, []byte(tail)} {
		if _, err := w.Write(part); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// fill takes the keys and common prefixes of one page from the listing.
func (p *page) fill(l *listing) {
	p.head.Reset()
	p.keys, p.prefixes, p.count = p.keys[:0], p.prefixes[:0], 0
	encoded := l.query.Get("encoding-type") == "url"
	for l.first < l.end && p.count < l.maxKeys {
		index := l.first
		if l.bucket.order == reversed {
			index = l.end - 1
		}
		first, end := p.add(l, index, encoded)
		if l.bucket.order == reversed {
			l.end = first
		} else {
			l.first = end
		}
		p.count++
	}
	p.addHead(l)
}

// add names the key with this index or its common prefix, and returns the range of the keys for which that stands.
func (p *page) add(l *listing, index int, encoded bool) (first, end int) {
	keys := &l.bucket.keys
	p.key = keys.appendKey(p.key[:0], index)
	if cut := l.cut(p.key); cut > 0 {
		p.prefixes = append(p.prefixes, "<CommonPrefixes><Prefix>"...)
		p.prefixes = appendName(p.prefixes, p.key[:cut], encoded)
		p.prefixes = append(p.prefixes, "</Prefix></CommonPrefixes>"...)
		return keys.sharing(index, cut)
	}
	second := modifiedSecond(index)
	to := append(p.keys, "<Contents><Key>"...)
	to = appendName(to, p.key, encoded)
	to = append(to, "</Key><LastModified>2024-01-01T"...)
	to = append(appendDigits(to, second/3600, 2), ':')
	to = append(appendDigits(to, second/60%60, 2), ':')
	to = appendDigits(to, second%60, 2)
	to = append(to, ".000Z</LastModified><ETag>&quot;"...)
	to = l.bucket.appendTag(to, index)
	to = append(to, "&quot;</ETag><Size>"...)
	to = strconv.AppendInt(to, l.bucket.objectBytes(), 10)
	p.keys = append(to, "</Size><StorageClass>STANDARD</StorageClass></Contents>"...)
	return index, index + 1
}

// appendName appends a part of a key, in which XML escapes nothing and URLs only the equals sign.
func appendName(to, name []byte, encoded bool) []byte {
	if before, after, found := bytes.Cut(name, []byte("=")); encoded && found {
		return append(append(append(to, before...), "%3D"...), after...)
	}
	return append(to, name...)
}

// urlEncoded is a name as encoded in replies with encoding-type=url.
func urlEncoded(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "%2F", "/") }

// addHead adds what is before the keys; the listing has the range that remains.
func (p *page) addHead(l *listing) {
	fmt.Fprintf(&p.head, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<ListBucketResult xmlns="%s">`, xmlNamespace)
	p.element("Name", l.bucket.name)
	encoding := l.query.Get("encoding-type")
	for _, name := range []struct{ element, parameter string }{
		{"Prefix", "prefix"}, {"Delimiter", "delimiter"}, {"StartAfter", "start-after"},
	} {
		value := l.query.Get(name.parameter)
		if encoding == "url" {
			value = urlEncoded(value)
		}
		if value != "" || name.element == "Prefix" {
			p.element(name.element, value)
		}
	}
	if l.query.Has("continuation-token") {
		p.element("ContinuationToken", l.query.Get("continuation-token"))
	}
	isTruncated := l.first < l.end && l.maxKeys > 0
	if isTruncated {
		p.element("NextContinuationToken", l.token())
	}
	p.element("KeyCount", strconv.Itoa(p.count))
	p.element("MaxKeys", strconv.Itoa(l.maxKeys))
	if encoding != "" {
		p.element("EncodingType", encoding)
	}
	p.element("IsTruncated", strconv.FormatBool(isTruncated))
}

func (p *page) element(name, text string) {
	fmt.Fprintf(&p.head, "<%s>", name)
	_ = xml.EscapeText(&p.head, []byte(text))
	fmt.Fprintf(&p.head, "</%s>", name)
}
