import type { Command } from 'commander'
import { answer, done } from '../api/unwrap.ts'
import { connect } from '../connect.ts'
import { type Shown, showList, showOne } from '../print/show.ts'
import { say, writeJson } from '../print/write.ts'
import { leaf } from './add-command.ts'

/** `plat site …`. */
export function addSiteCommands(program: Command): void {
  const site = program.command('site').description('places that clusters stand in')
  leaf(site, 'list', 'list sites').action(async (options: Shown) =>
    showList(options, await answer(connect().GET('/api/v1/sites')), [
      { title: 'ID', of: ({ id }) => id },
      { title: 'NAME', of: ({ name }) => name, isFlexible: true },
      { title: 'CREATED', of: ({ createdAt }) => createdAt },
    ]),
  )
  leaf(site, 'create <name>', 'create a site').action(async (name: string, options: Shown) =>
    showOne(options, await answer(connect().POST('/api/v1/sites', { body: { name } }))),
  )
  leaf(site, 'delete <id>', 'remove a site that no cluster stands in').action(async (id: string, { json }: Shown) => {
    await done(connect().DELETE('/api/v1/sites/{id}', { params: { path: { id } } }))
    await (json ? writeJson({ id, deleted: true }) : say(`${id} is removed.`))
  })
}
