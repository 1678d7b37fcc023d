import { createHash } from 'node:crypto'
import { type Answer, expectStatus } from './answer.ts'
import type { Client } from './client.ts'
import type { Platform } from './platform.ts'
import { waitFor } from '../../support/wait-for.ts'

/** The audit trail as whoever holds an export verifies it, by nothing but what the contract says of `AuditEntry`. */

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')

/** Canonical JSON (RFC 8785): names sorted by their UTF-16 code units, texts and numbers as ECMAScript writes them. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join()}}`
}

/** Where an export begins: behind which entry, and what the first one names as the hash before it. */
interface Start {
  seq: number
  previousHash: string
}

/** The start of a whole export. */
export const startOf = (organisationId: string): Start => ({ seq: 0, previousHash: sha256(organisationId) })

/** The sequence number of the first entry that does not fit; undefined where the chain is whole. */
export function firstBroken({ seq, previousHash }: Start, entries: readonly any[]): number | undefined {
  for (const { hash, ...content } of entries) {
    seq += 1
    const isInPlace = content.seq === seq && content.previousHash === previousHash
    if (!isInPlace || sha256(canonicalJson(content)) !== hash) return seq
    previousHash = hash
  }
  return undefined
}

/** All parts of an export, from the first or a later address on. */
export async function exportParts(client: Client, path: string): Promise<string[]> {
  const parts: string[] = []
  for (let next: string | undefined = path; next !== undefined;) {
    const answer: Answer = await client.get(next)
    expectStatus(answer, 200)
    parts.push(answer.text)
    next = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1]
  }
  return parts
}

export const parseLines = (text: string): any[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** The rows of an export as CSV (RFC 4180), without the apostrophes that keep spreadsheets from taking text for formulas. */
function parseRows(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push((quoted?.replaceAll('""', '"') ?? plain ?? '').replace(/^'/, ''))
    if (end === '\r\n') rows.push([])
  }
  return rows.slice(0, -1)
}

/** The entries of an export as CSV. */
export function parseCsv(text: string): any[] {
  const [names = [], ...rows] = parseRows(text)
  return rows.map((row) => {
    const cell = Object.fromEntries(names.map((name, column) => [name, row[column] ?? '']))
    const { seq, actorKind, actorId, actorTokenId, address, extra, ...texts } = cell
    return {
      ...texts,
      seq: Number(seq),
      actor: { kind: actorKind, id: actorId, ...(actorTokenId !== '' && { tokenId: actorTokenId }) },
      ...(address !== '' && { address }),
      ...(extra === 'true' && { extra: true }),
    }
  })
}

/** The entries of a query, newest first, once there are as many as there should be: they follow a change by a moment. */
export const entriesOf = (client: Client, query: string, count: number): Promise<any[]> =>
  waitFor(`${count} entries of ${query}`, async () => {
    const { items, totalCount } = expectStatus(await client.get(`/api/v1/platform/audit?${query}&pageSize=100`), 200)
    return totalCount === count && items
  })

/** Registers a cluster and removes it; answers its identifier once both are on record. */
export async function recordedCluster(platform: Platform, client: Client): Promise<string> {
  const body = { name: platform.newName(), type: 'Hypervisor' }
  const { id } = expectStatus(await client.post('/api/v1/clusters', body), 201)
  expectStatus(await client.delete(`/api/v1/clusters/${id}`), 204)
  await entriesOf(client, `resource=${id}`, 2)
  return id
}
