import { readFileSync, writeFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import { connect } from '../connect.ts'
import { CliError, exitCodes, messageOf } from '../exit.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import { say, write } from '../print/write.ts'
import { addCommand, addListCommand, withExamples } from './add-command.ts'
import { findUser, readUserNames } from './user.ts'

interface Filter {
  actor?: string
  action?: string
  resource?: string
  from?: string
  to?: string
}

export function addAuditCommands(program: Command): void {
  const audit = program.command('audit').description('audit trail')
  addListCommand(audit, 'list', 'list audit entries', {
    listAuditEntries: ['plat audit list --action cluster.delete', 'plat audit list --from 2026-11-01T00:00:00Z'],
  })
    .option('--actor <name|id>', 'only entries of this user or relay')
    .option('--action <name>', 'only this action')
    .option('--resource <id>', 'only entries about this resource')
    .option('--from <time>', 'only entries at or after this time')
    .option('--to <time>', 'only entries before this time')
    .action(list)
  const exportCommand = audit
    .command('export')
    .description('print the whole audit trail, oldest first')
    .addOption(new Option('--format <format>', 'output format').choices(['ndjson', 'csv']).default('ndjson'))
    .option('--checkpoint <file>', 'also write a signed checkpoint of the last entry to this file')
    .action(exportTrail)
  withExamples(exportCommand, {
    exportAudit: ['plat audit export', 'plat audit export --format csv --checkpoint audit.jws > audit.csv'],
  })
  addCommand(audit, 'checkpoint', 'print a signed checkpoint of the newest entry', {
    getAuditCheckpoint: 'plat audit checkpoint',
  }).action(showCheckpoint)
  addCommand(audit, 'verify', 'verify the hash chain; exits with 1 if it is broken', {
    verifyAudit: ['plat audit verify', 'plat audit verify --checkpoint audit.jws'],
  })
    .option('--checkpoint <file>', 'also detect entries that were removed or replaced since this checkpoint')
    .action(verify)
}

async function list({
  limit,
  all,
  json,
  wide,
  actor: nameOrId,
  ...given
}: PrintOptions & Extent & Filter): Promise<void> {
  const api = connect()
  const actor =
    nameOrId === undefined || /^(system|[a-z]+_[0-9a-z]{26})$/.test(nameOrId)
      ? nameOrId
      : (await findUser(api, nameOrId)).id
  const filter = { ...given, ...(actor !== undefined && { actor }) }
  const read = (paging: Paging) =>
    unwrap(api.GET('/api/v1/platform/audit', { params: { query: { ...filter, ...paging } } }))
  const entries = await readList({ limit, ...(all && { all }) }, read)
  const names =
    process.stdout.isTTY && !json
      ? await readUserNames(
          api,
          entries.items.map(({ actor: { id } }) => id),
        )
      : new Map<string, string>()
  await showList({ ...(json && { json }), ...(wide && { wide }) }, entries, [
    { title: 'SEQ', cellValue: ({ seq }) => seq },
    { title: 'AT', cellValue: ({ at }) => at, format: 'age' },
    { title: 'ACTOR', cellValue: ({ actor }) => names.get(actor.id) ?? actor.id, isFlexible: 'middle' },
    { title: 'ACTION', cellValue: ({ action }) => action, isFlexible: 'middle' },
    { title: 'RESOURCE', cellValue: ({ resource }) => resource, isFlexible: 'middle' },
    { title: 'DETAIL', cellValue: ({ detail }) => detail, isFlexible: true },
  ])
}

// The `Link` header of each part except the last refers to the next part.
async function exportTrail({ format, checkpoint }: { format: 'ndjson' | 'csv'; checkpoint?: string }): Promise<void> {
  const api = connect()
  let signedCheckpoint: string | null = null
  for (let after: number | undefined = 0; after !== undefined;) {
    const query = { format, after }
    const call = api.GET('/api/v1/platform/audit/export', { params: { query }, parseAs: 'text' })
    const part: unknown = await unwrap(call)
    await write(typeof part === 'string' ? part : '')
    const { headers } = (await call).response
    after = nextOf(headers.get('link'))
    signedCheckpoint = headers.get('audit-checkpoint')
  }
  if (checkpoint !== undefined)
    withFile(checkpoint, () => writeFileSync(checkpoint, `${signedCheckpoint ?? ''}\n`, { mode: 0o600 }))
}

function withFile<Value>(file: string, use: () => Value): Value {
  try {
    return use()
  } catch (error) {
    throw new CliError('usage', `The checkpoint file ${file} cannot be used: ${messageOf(error)}.`)
  }
}

const nextOf = (link: string | null): number | undefined => {
  const [, after] = /[?&]after=(\d+)[^>]*>;\s*rel="next"/.exec(link ?? '') ?? []
  return after === undefined ? undefined : Number(after)
}

async function showCheckpoint(options: PrintOptions): Promise<void> {
  const newestCheckpoint = await unwrap(connect().GET('/api/v1/platform/audit/checkpoint'))
  if (options.json) return showOne(options, newestCheckpoint)
  await write(`${newestCheckpoint.checkpoint}\n`)
}

async function verify({ checkpoint: file, ...options }: PrintOptions & { checkpoint?: string }): Promise<void> {
  const checkpoint = file === undefined ? undefined : withFile(file, () => readFileSync(file, 'utf8').trim())
  const api = connect()
  const verification = await verifyChain(api, checkpoint)
  await showOne(options, verification)
  if (verification.valid) return
  say(`The audit trail is broken at entry ${verification.firstBroken}.`)
  process.exitCode = exitCodes.refused
}

// One request verifies a limited number of entries.
async function verifyChain(api: Api, checkpoint: string | undefined): Promise<Schemas['AuditVerification']> {
  let entryCount = 0
  for (let after = 0; ;) {
    const query = { after, ...(checkpoint !== undefined && { checkpoint }) }
    const part = await unwrap(api.GET('/api/v1/platform/audit/verify', { params: { query } }))
    entryCount += part.entries
    const { next, ...last } = { ...part, entries: entryCount }
    if (!part.valid || next === undefined) return last
    after = next
  }
}
