import type { Command } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { connect } from '../connect.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import type { Column } from '../print/table.ts'
import { say } from '../print/write.ts'
import { addCommand, addTableCommand } from './add-command.ts'
import { addAuthorCommands } from './module-author.ts'
import { addCatalogCommands } from './module-catalog.ts'
import { addInstallCommands } from './module-install.ts'
import { addReleaseCommands } from './module-release.ts'

type Module = Schemas['Module']

const columns: Column<Module>[] = [
  { title: 'ID', cellValue: ({ id }) => id, isFlexible: 'middle' },
  { title: 'VERSION', cellValue: ({ version }) => version, isFlexible: 'middle' },
  { title: 'STATE', cellValue: ({ state }) => state, format: 'state' },
  { title: 'HEALTH', cellValue: ({ health }) => health, format: 'state' },
  { title: 'VERIFIED', cellValue: ({ verified }) => (verified ? 'yes' : 'no') },
  { title: 'API', cellValue: ({ apiBasePath }) => apiBasePath, isFlexible: 'middle' },
  { title: 'ISOLATION', cellValue: ({ isolation }) => isolation, isFlexible: true },
  { title: 'UPDATED', cellValue: ({ updatedAt }) => updatedAt, format: 'age' },
]

const notesText = `
Environment
  PLAT_REGISTRY_USERNAME  credentials for a registry; not needed for the local platform's
  PLAT_REGISTRY_PASSWORD  registry or after docker login

Tutorial: docs/modules.md`

export function addModuleCommands(program: Command): void {
  const module = program.command('module').description('install, build and publish modules')
  addCatalogCommands(module)
  addTableCommand(module, 'list', 'list installed modules', { listModules: 'plat module list' }).action(list)
  addCommand(module, 'get <id>', 'show an installed module with its health', {
    getModule: 'plat module get hello',
  }).action(get)
  addInstallCommands(module)
  addAuthorCommands(module)
  addReleaseCommands(module)
  module.addHelpText('after', notesText)
}

async function list({ json, ...options }: PrintOptions): Promise<void> {
  const modules = await unwrap(connect().GET('/api/v1/modules'))
  await showList({ ...options, ...(json && { json }) }, modules, columns)
  if (json) return
  for (const { id, lastError, warnings } of modules.items) {
    if (lastError) say(`${id}: ${lastError.message} (${lastError.code})`)
    for (const warning of warnings) say(`${id}: ${warning}`)
  }
}

async function get(id: string, options: PrintOptions): Promise<void> {
  await showOne(options, await unwrap(connect().GET('/api/v1/modules/{id}', { params: { path: { id } } })))
}
