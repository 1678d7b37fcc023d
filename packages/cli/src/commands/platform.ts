import type { Command } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import { connect } from '../connect.ts'
import { type PrintOptions, showOne } from '../print/show.ts'
import { addCommand } from './add-command.ts'

export function addPlatformCommands(program: Command): void {
  const platform = program.command('platform').description('settings of the platform')
  addCommand(platform, 'settings', 'show the settings of the platform, or change its public address', {
    getPlatformSettings: 'plat platform settings',
    updatePlatformSettings: 'plat platform settings --public-url https://platform.example.com',
  })
    .option('--public-url <url>', 'https address of the portal, to which identity providers redirect')
    .action(async ({ publicUrl, ...options }: PrintOptions & { publicUrl?: string }) => {
      const path = '/api/v1/platform/settings'
      const api = connect()
      const settings = publicUrl === undefined ? api.GET(path) : api.PATCH(path, { body: { publicUrl } })
      await showOne(options, await unwrap(settings))
    })
}
