import { mergeGroups } from '@platform/contract/merge-groups'
import type { Api, Schemas } from '../api/client.ts'
import { unwrap } from '../api/unwrap.ts'
import { namesOf } from '../clusters.ts'
import type { PrintOptions } from '../print/show.ts'
import { cellOf } from '../print/table.ts'
import { countText, sanitiseText } from '../print/text.ts'
import { say, write, writeJson } from '../print/write.ts'

type Group = Schemas['JobGroup']

const maxNames = 5
const maxLines = 10

const groupsOf = (api: Api, batchId: string): Promise<Schemas['JobGroups']> =>
  unwrap(api.GET('/api/v1/jobs/batch/{batchId}/groups', { params: { path: { batchId } } }))

/** Prints the groups of equal results of batches, failures first. */
export async function printGroups(
  api: Api,
  batchIds: readonly string[],
  { json }: PrintOptions,
  knownNames?: ReadonlyMap<string, string>,
): Promise<void> {
  const mergedGroups = mergeGroups(await Promise.all(batchIds.map((id) => groupsOf(api, id))))
  if (json) return writeJson(mergedGroups)
  const { groups, pending } = mergedGroups
  const shownIds = groups.flatMap(({ clusterIds }) => clusterIds.slice(0, maxNames))
  const names = knownNames ?? (await namesOf(api, shownIds))
  for (const group of groups) await write(textOf(group, names))
  if (groups.length === 0) say('No job has ended.')
  if (pending > 0) say(`Not ended: ${countText(pending, 'job')}.`)
}

function textOf(group: Group, names: ReadonlyMap<string, string>): string {
  const { count, clusterIds, sample, sampleTruncated = false } = group
  const shownNames = clusterIds.slice(0, maxNames).map((id) => cellOf(names.get(id) ?? id))
  const moreText = count > shownNames.length ? ` and ${count - shownNames.length} more` : ''
  const heading = `${count} ${describeEnd(group)}: ${shownNames.join(', ')}${moreText}\n`
  return heading + (sample === undefined ? '' : excerpt(sample, sampleTruncated))
}

function describeEnd({ status, statusReason, exitCode }: Group): string {
  const reason = statusReason === undefined || statusReason === 'exit_nonzero' ? '' : ` ${statusReason}`
  return `${status}${reason}${exitCode === null ? '' : `, exit code ${exitCode}`}`
}

function excerpt(sample: string, isTruncated: boolean): string {
  const lines = sanitiseText(sample).replace(/\n$/, '').split('\n')
  const shownLines = lines.slice(0, maxLines).map((line) => `  | ${line}\n`)
  const isCut = isTruncated || lines.length > maxLines
  return sample === '' ? '  (no output)\n' : `${shownLines.join('')}${isCut ? '  | …\n' : ''}`
}
