import { type Command, Option } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { type Extent, readList } from '../api/pages.ts'
import { connect } from '../connect.ts'
import { exitCodes } from '../exit.ts'
import { type Shown, showList, showOne } from '../print/show.ts'
import { say, write } from '../print/write.ts'
import { addCommand, addListCommand, withExamples } from './add-command.ts'

interface Filter {
  actor?: string
  action?: string
  resource?: string
  from?: string
  to?: string
}

export function addAuditCommands(program: Command): void {
  const audit = program.command('audit').description('audit trail')
  addListCommand(audit, 'list', 'list audit entries', [
    'plat audit list --action cluster.delete --from 2026-11-01T00:00:00Z',
  ])
    .option('--actor <id>', 'only entries of this user or relay')
    .option('--action <name>', 'only this action')
    .option('--resource <id>', 'only entries about this resource')
    .option('--from <time>', 'only entries at or after this time')
    .option('--to <time>', 'only entries before this time')
    .action(list)
  const exporting = audit
    .command('export')
    .description('print the whole audit trail, oldest first')
    .addOption(new Option('--format <format>', 'output format').choices(['ndjson', 'csv']).default('ndjson'))
    .action(exportTrail)
  withExamples(exporting, ['plat audit export --format csv > audit.csv'])
  addCommand(audit, 'verify', 'verify the hash chain; exits with 1 if it is broken').action(verify)
}

async function list({ limit, all, json, ...filter }: Shown & Extent & Filter): Promise<void> {
  const api = connect()
  const read = (paging: { page: number; pageSize: number }) =>
    unwrap(api.GET('/api/v1/platform/audit', { params: { query: { ...filter, ...paging } } }))
  await showList({ ...(json && { json }) }, await readList({ limit, ...(all && { all }) }, read), [
    { title: 'SEQ', of: ({ seq }) => seq },
    { title: 'AT', of: ({ at }) => at },
    { title: 'ACTOR', of: ({ actor }) => actor.id },
    { title: 'ACTION', of: ({ action }) => action },
    { title: 'RESOURCE', of: ({ resource }) => resource, isFlexible: true },
    { title: 'DETAIL', of: ({ detail }) => detail, isFlexible: true },
  ])
}

// The `Link` header of each part refers to the next one.
async function exportTrail({ format }: { format: 'ndjson' | 'csv' }): Promise<void> {
  const api = connect()
  for (let after: number | undefined = 0; after !== undefined;) {
    const query = { format, after }
    const call = api.GET('/api/v1/platform/audit/export', { params: { query }, parseAs: 'text' })
    const part: unknown = await unwrap(call)
    await write(typeof part === 'string' ? part : '')
    after = nextOf((await call).response.headers.get('link'))
  }
}

const nextOf = (link: string | null): number | undefined => {
  const [, after] = /[?&]after=(\d+)[^>]*>;\s*rel="next"/.exec(link ?? '') ?? []
  return after === undefined ? undefined : Number(after)
}

async function verify(options: Shown): Promise<void> {
  const api = connect()
  const found = await verifyChain(api)
  await showOne(options, found)
  if (found.valid) return
  say(`The audit trail is broken at entry ${found.firstBroken}.`)
  process.exitCode = exitCodes.refused
}

// One request verifies a limited number of entries.
async function verifyChain(api: Api): Promise<Schemas['AuditVerification']> {
  let entries = 0
  for (let after = 0; ;) {
    const part = await unwrap(api.GET('/api/v1/platform/audit/verify', { params: { query: { after } } }))
    entries += part.entries
    const { next, ...last } = { ...part, entries }
    if (!part.valid || next === undefined) return last
    after = next
  }
}
