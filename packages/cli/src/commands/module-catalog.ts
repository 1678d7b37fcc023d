import type { Command } from 'commander'
import { setTimeout as sleep } from 'node:timers/promises'
import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { connect } from '../connect.ts'
import { CliError } from '../exit.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import type { Column } from '../print/table.ts'
import { countText } from '../print/text.ts'
import { say } from '../print/write.ts'
import { addCommand, addTableCommand } from './add-command.ts'

type CatalogItem = Schemas['CatalogItem']

interface Filter extends PrintOptions {
  installed?: true
  verified?: true
  search?: string
}

const columns: Column<CatalogItem>[] = [
  { title: 'ID', cellValue: ({ id }) => id, isFlexible: 'middle' },
  { title: 'VERSION', cellValue: ({ version }) => version },
  { title: 'VERIFIED', cellValue: ({ verified }) => (verified ? 'yes' : 'no') },
  { title: 'INSTALLED', cellValue: ({ installedVersion }) => installedVersion },
  { title: 'UPDATE', cellValue: ({ updateAvailable }) => (updateAvailable ? 'yes' : '-') },
  { title: 'DESCRIPTION', cellValue: ({ description }) => description, isFlexible: true },
]

export function addCatalogCommands(module: Command): void {
  addTableCommand(module, 'catalog', 'list modules that can be installed', {
    listCatalog: ['plat module catalog', 'plat module catalog --search greeting', 'plat module catalog --verified'],
  })
    .option('--installed', 'only installed modules')
    .option('--verified', 'only modules signed by a trusted key')
    .option('--search <words>', 'only modules with these words in name or description')
    .action(listCatalog)
  addCommand(module, 'scan', 'scan the sources of the catalog and wait', { scanCatalog: 'plat module scan' })
    .option('--no-wait', 'return immediately')
    .action(scan)
}

const readCatalog = (api: Api, query: { installed?: 'true'; verified?: 'true'; search?: string } = {}) =>
  unwrap(api.GET('/api/v1/modules/catalog', { params: { query } }))

async function listCatalog({ json, wide, installed, verified, search }: Filter): Promise<void> {
  const list = await readCatalog(connect(), {
    ...(installed && { installed: 'true' as const }),
    ...(verified && { verified: 'true' as const }),
    ...(search && { search }),
  })
  await showList({ ...(json && { json }), ...(wide && { wide }) }, list, columns)
  if (json) return
  for (const { id, unverifiedReason: reason } of list.items) if (reason) say(`${id} is not verified: ${reason}`)
  list.problems.forEach(say)
}

async function scan({ json, wait }: PrintOptions & { wait: boolean }): Promise<void> {
  const api = connect()
  const acceptedJob = await unwrap(api.POST('/api/v1/modules/catalog/scan'))
  if (!wait) return json ? showOne({ json }, acceptedJob) : say('Scan started. See: plat module catalog')
  const { scannedAt, totalCount, problems } = await waitForScan(api, acceptedJob.scannedAt)
  if (json) return showOne({ json }, { scannedAt, totalCount, problems })
  say(`The catalog is up to date: ${countText(totalCount, 'module')}.`)
  problems.forEach(say)
}

const pauseMs = 300
// Registries may take minutes to respond.
const scanTimeoutMs = 180_000

// Waits until the time of the last scan changes.
async function waitForScan(api: Api, before: string | undefined) {
  const deadlineMs = performance.now() + scanTimeoutMs
  for (;;) {
    const catalogItems = await readCatalog(api)
    if (catalogItems.scannedAt !== before) return catalogItems
    if (performance.now() > deadlineMs)
      throw new CliError('unreachable', 'The scan has not finished yet. See the result later with: plat module catalog')
    await sleep(pauseMs)
  }
}
