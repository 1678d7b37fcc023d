import type { Command } from 'commander'
import { expectNoBody, unwrap } from '../api/unwrap.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import { connect } from '../connect.ts'
import { CliError } from '../exit.ts'
import { type PrintOptions, showList } from '../print/show.ts'
import { say, writeJson } from '../print/write.ts'
import { addCommand, addListCommand } from './add-command.ts'

export function addNotificationCommands(program: Command): void {
  const notification = program.command('notification').description('your notifications')
  addListCommand(notification, 'list', 'list notifications', { listNotifications: 'plat notification list --unread' })
    .option('--unread', 'only unread notifications')
    .action(list)
  addCommand(notification, 'read [ids...]', 'mark notifications as read', {
    updateNotifications: 'plat notification read --all',
  })
    .option('--all', 'mark all notifications')
    .action(read)
}

async function list({ limit, all, unread, ...options }: PrintOptions & Extent & { unread?: true }): Promise<void> {
  const api = connect()
  const unreadOnly = unread ? { unreadOnly: true } : {}
  const readPage = (paging: Paging) =>
    unwrap(api.GET('/api/v1/notifications', { params: { query: { ...unreadOnly, ...paging } } }))
  await showList(options, await readList({ limit, ...(all && { all }) }, readPage), [
    { title: 'ID', cellValue: ({ id }) => id },
    { title: 'READ', cellValue: ({ read }) => (read ? 'yes' : 'no') },
    { title: 'SEVERITY', cellValue: ({ severity }) => severity, format: 'state' },
    { title: 'TYPE', cellValue: ({ type }) => type, isWide: true },
    // Isolating characters would be printed as escapes.
    { title: 'TITLE', cellValue: ({ title }) => title.replaceAll(/[\u2068\u2069]/g, ''), isFlexible: true },
    { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
  ])
}

async function read(ids: string[], { all, json }: PrintOptions & { all?: true }): Promise<void> {
  if (all ? ids.length > 0 : ids.length === 0) throw new CliError('usage', 'Specify notification ids, or --all.')
  await expectNoBody(connect().PATCH('/api/v1/notifications', { body: all ? { markAllRead: true } : { ids } }))
  await (json ? writeJson(all ? { markAllRead: true } : { ids }) : say('Marked as read.'))
}
