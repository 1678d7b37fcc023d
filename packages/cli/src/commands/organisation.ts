import type { Command } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import { type Extent, readList } from '../api/pages.ts'
import { connect } from '../connect.ts'
import { type Shown, showList, showOne } from '../print/show.ts'
import { addCommand, addListCommand } from './add-command.ts'

export function addOrganisationCommands(program: Command): void {
  const organisation = program.command('organisation').description('tenants of the platform')
  addListCommand(organisation, 'list', 'list organisations').action(
    async ({ limit, all, ...options }: Shown & Extent) => {
      const api = connect()
      const read = (query: { page: number; pageSize: number }) =>
        unwrap(api.GET('/api/v1/platform/organisations', { params: { query } }))
      await showList(options, await readList({ limit, ...(all && { all }) }, read), [
        { title: 'ID', of: ({ id }) => id },
        { title: 'NAME', of: ({ name }) => name, isFlexible: true },
        { title: 'PLATFORM', of: ({ isPlatform }) => (isPlatform ? 'yes' : 'no') },
        { title: 'CREATED', of: ({ createdAt }) => createdAt },
      ])
    },
  )
  addCommand(organisation, 'create <name>', 'create an organisation; add its first OrgAdmin with plat user create', [
    'plat organisation create Acme',
    'plat user create ann --organisation org_01… --role OrgAdmin --email ann@acme.example',
  ]).action(async (name: string, options: Shown) =>
    showOne(options, await unwrap(connect().POST('/api/v1/platform/organisations', { body: { name } }))),
  )
}
