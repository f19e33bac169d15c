/**
 * Direct writes: tasks write into a table's own directories, unseen; one commit record decides; what it says is then done, by
 * whoever is there. docs/direct-writes-protocol.md has the protocol and what becomes of each failure.
 *
 * <pre>
 * driver   DirectJob ── begin ──► Journal, Lease          Recovery
 *              │                      ▲                       │
 *              │                  Settlement ◄────────────────┘   commits or aborts what dead drivers have left
 *              │                      │
 *              └── commit ──► Turn ──►│ CommitRecord ──► Apply ──► ApplyBatch (anywhere)
 *                                                          │
 * tasks    Placement ──► TaskAttempt ──► PendingFile       │
 *                             │                            ▼
 *                             └──────────────────────►  Store: LocalStore, HdfsStore (hidden files), S3aStore (uploads)
 * </pre>
 *
 * An overwrite that is visible as a whole is the same in other directories (SwapDirectories). Either the metastore makes it visible, and
 * what it replaces goes later (ReplacedFiles), or each directory changes places with the old one (Exchanges).
 *
 * Everything that survives a driver goes through {@link io.millstream.write.Store}, call by call: the tests stop it at each of them, and
 * try those of two jobs in every order.
 */
package io.millstream.write;
