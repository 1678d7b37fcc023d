import type { Command } from 'commander'
import { expectNoBody, unwrap } from '../api/unwrap.ts'
import { connect } from '../connect.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import { say, writeJson } from '../print/write.ts'
import { addCommand, addTableCommand } from './add-command.ts'

export function addSiteCommands(program: Command): void {
  const site = program.command('site').description('sites of clusters')
  addTableCommand(site, 'list', 'list sites', { listSites: 'plat site list' }).action(async (options: PrintOptions) =>
    showList(options, await unwrap(connect().GET('/api/v1/sites')), [
      { title: 'ID', cellValue: ({ id }) => id },
      { title: 'NAME', cellValue: ({ name }) => name, isFlexible: true },
      { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
    ]),
  )
  addCommand(site, 'create <name>', 'create a site', { createSite: 'plat site create Berlin' }).action(
    async (name: string, options: PrintOptions) =>
      showOne(options, await unwrap(connect().POST('/api/v1/sites', { body: { name } }))),
  )
  addCommand(site, 'delete <id>', 'remove a site that no cluster uses', {
    deleteSite: 'plat site delete site_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, { json }: PrintOptions) => {
    await expectNoBody(connect().DELETE('/api/v1/sites/{id}', { params: { path: { id } } }))
    await (json ? writeJson({ id, deleted: true }) : say(`${id} removed.`))
  })
}
