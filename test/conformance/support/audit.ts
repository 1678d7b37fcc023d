import { createHash } from 'node:crypto'
import { type ApiResponse, expectStatus } from './answer.ts'
import type { Client } from './client.ts'
import type { Platform } from './platform.ts'
import { waitFor } from '../../support/wait-for.ts'

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')

/** Returns canonical JSON (RFC 8785). */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join()}}`
}

/** Where an export starts: the preceding sequence number and hash. */
interface ChainStart {
  seq: number
  previousHash: string
}

export const chainStartOf = (organisationId: string): ChainStart => ({ seq: 0, previousHash: sha256(organisationId) })

/** Returns the sequence number of the first entry that does not match, or undefined for an intact chain. */
export function firstInvalidSeq({ seq, previousHash }: ChainStart, entries: readonly any[]): number | undefined {
  for (const { hash, ...content } of entries) {
    seq += 1
    const isNext = content.seq === seq && content.previousHash === previousHash
    if (!isNext || sha256(canonicalJson(content)) !== hash) return seq
    previousHash = hash
  }
  return undefined
}

export async function exportParts(client: Client, path: string): Promise<string[]> {
  const parts: string[] = []
  for (let next: string | undefined = path; next !== undefined;) {
    const response: ApiResponse = await client.get(next)
    expectStatus(response, 200)
    parts.push(response.text)
    next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
  }
  return parts
}

export const parseLines = (text: string): any[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** Parses CSV (RFC 4180) and removes the apostrophes that prevent formulas. */
function parseRows(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push((quoted?.replaceAll('""', '"') ?? plain ?? '').replace(/^'/, ''))
    if (end === '\r\n') rows.push([])
  }
  return rows.slice(0, -1)
}

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

export const waitForEntries = (client: Client, query: string, count: number): Promise<any[]> =>
  waitFor(`${count} entries of ${query}`, async () => {
    const { items, totalCount } = expectStatus(await client.get(`/api/v1/platform/audit?${query}&pageSize=100`), 200)
    return totalCount === count && items
  })

export async function recordedCluster(platform: Platform, client: Client): Promise<string> {
  const body = { name: platform.newName(), type: 'Hypervisor' }
  const { id } = expectStatus(await client.post('/api/v1/clusters', body), 201)
  expectStatus(await client.delete(`/api/v1/clusters/${id}`), 204)
  await waitForEntries(client, `resource=${id}`, 2)
  return id
}
