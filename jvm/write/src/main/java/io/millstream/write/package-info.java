/**
 * Direct writes: tasks write staged files, which no reader sees, into a table's own directories; one commit record
 * decides; any process can then carry it out. docs/direct-writes-protocol.md describes the protocol and the result of
 * each failure.
 *
 * <pre>
 * driver   DirectJob ── begin ──► Journal, Lease          recovery.Recovery
 *              │                      ▲                       │
 *              │                  Resolution ◄────────────────┘   finishes or aborts the jobs of others
 *              │                      │
 *              ├── commit ► Commit: CommitLock ► CommitRecord ──► Apply ──► ApplyBatch (anywhere)
 *              └── JobCleaner                              │
 * tasks    Placement ──► store.TaskAttempt ──► StagedFile  │
 *                             │                            ▼
 *                             └──────────────────────►  store.Store: local, hdfs (hidden files), s3a (uploads)
 * </pre>
 *
 * <ul>
 *   <li>{@code protocol}: the journal, the commit lock, the commit record and its apply; knows only the interfaces of
 *       stores and metastores;
 *   <li>{@code store}: the protocol's interface to a file system, and its three implementations; knows no protocol;
 *   <li>{@code metastore}: the protocol's interface to a catalog; knows nothing else;
 *   <li>{@code recovery}: {@code millstream recover}.
 * </ul>
 *
 * An overwrite that becomes visible as a whole works in the same way in separate directories (SwapDirectories). Either
 * the metastore makes it visible, and the replaced files are deleted later (ReplacedFiles), or each directory is
 * exchanged with the old one (Exchanges).
 */
package io.millstream.write;
