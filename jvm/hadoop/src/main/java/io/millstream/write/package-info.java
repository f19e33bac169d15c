/**
 * Direct writes: tasks write into a table's own directories, unseen; one commit record decides; what it says is then done, by
 * whoever is there. docs/direct-writes-protocol.md has the protocol and what becomes of each failure.
 *
 * <pre>
 * driver   DirectJob ── begin ──► Journal, Lease          recovery.Recovery
 *              │                      ▲                       │
 *              │                  Resolution ◄────────────────┘   finishes or aborts what others have left
 *              │                      │
 *              ├── commit ► Commit: CommitLock ► CommitRecord ──► Apply ──► ApplyBatch (anywhere)
 *              └── JobCleaner                              │
 * tasks    Placement ──► store.TaskAttempt ──► StagedFile  │
 *                             │                            ▼
 *                             └──────────────────────►  store.Store: local, hdfs (hidden files), s3a (uploads)
 * </pre>
 *
 * <ul>
 * <li>{@code protocol}: the journal, the commit lock, the record and what carries it out; knows stores and metastores by their interfaces;
 * <li>{@code store}: what the protocol asks of a file system, and its three kinds; knows no protocol;
 * <li>{@code metastore}: what the protocol asks of a catalog; knows nothing else;
 * <li>{@code recovery}: what a person asks for by {@code millstream recover}.
 * </ul>
 *
 * An overwrite that is visible as a whole is the same in other directories (SwapDirectories). Either the metastore makes it visible, and
 * what it replaces goes later (ReplacedFiles), or each directory changes places with the old one (Exchanges).
 */
package io.millstream.write;
