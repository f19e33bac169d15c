package main

import "sort"

// A keyspace names the keys of a synthetic bucket by their indices, in the order of their bytes:
//
//	set/dir=0000/part-00000.txt   with directories
//	set/part-0000000.txt          without
//
// Numbers have leading zeros, so keys are in the order of their numbers. No key is stored: a key is computed from its
// index, an index is found by binary search, and keys that share their first bytes are a range with computed bounds.
type keyspace struct {
	head, middle, tail    string
	dirs, files           int // files of each directory
	dirDigits, fileDigits int
}

const (
	keyTail       = ".txt"
	keyMiddle     = "/part-"
	maxOfKind     = 1_000_000_000 // directories, or files of a directory
	minDirDigits  = 4
	minFileDigits = 5
	minFlatDigits = 7
)

// newKeyspace has `files` keys in each of `dirs` directories; without directories, all keys are in one.
func newKeyspace(dirs, files int) keyspace {
	if dirs == 0 {
		return keyspace{"set", keyMiddle, keyTail, 1, files, 0, max(minFlatDigits, digits(files-1))}
	}
	return keyspace{"set/dir=", keyMiddle, keyTail, dirs, files, max(minDirDigits, digits(dirs-1)), max(minFileDigits, digits(files-1))}
}

func digits(number int) int {
	count := 1
	for ; number >= 10; number /= 10 {
		count++
	}
	return count
}

func (k *keyspace) size() int { return k.dirs * k.files }

// appendKey appends the key with this index.
func (k *keyspace) appendKey(to []byte, index int) []byte {
	to = append(to, k.head...)
	to = appendDigits(to, index/k.files, k.dirDigits)
	to = append(to, k.middle...)
	to = appendDigits(to, index%k.files, k.fileDigits)
	return append(to, k.tail...)
}

const zeros = "00000000000000000000"

func appendDigits(to []byte, number, count int) []byte {
	to = append(to, zeros[:count]...)
	for at := len(to) - 1; number > 0; at-- {
		to[at] += byte(number % 10)
		number /= 10
	}
	return to
}

// search is the index of the first key that is not before `key`, and whether it is `key` itself.
func (k *keyspace) search(key string) (int, bool) {
	var scratch [64]byte
	index := sort.Search(k.size(), func(i int) bool { return string(k.appendKey(scratch[:0], i)) >= key })
	return index, index < k.size() && string(k.appendKey(scratch[:0], index)) == key
}

// sharing is the range of the keys that share their first `length` bytes with the key with this index.
func (k *keyspace) sharing(index, length int) (first, end int) {
	fixed := length - len(k.head)
	if free := min(k.dirDigits-fixed, k.dirDigits); free > 0 {
		first, end = aligned(index/k.files, free, k.dirs)
		return first * k.files, end * k.files
	}
	fixed -= k.dirDigits + len(k.middle)
	dir := index - index%k.files
	first, end = aligned(index%k.files, max(0, min(k.fileDigits-fixed, k.fileDigits)), k.files)
	return dir + first, dir + end
}

// aligned is the range of the numbers below `limit` that differ from `number` only in the last `free` digits.
func aligned(number, free, limit int) (first, end int) {
	group := 1
	for ; free > 0; free-- {
		group *= 10
	}
	first = number - number%group
	return first, min(first+group, limit)
}
