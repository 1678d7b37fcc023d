/** `npm run restore -- FILE`: restores the data folder from a backup. */
import { resolve } from 'node:path'
import { parseSettings } from '../settings.ts'
import { shellCommand } from '../shell-command.ts'
import { readPassphrase } from './encryption.ts'
import { parseFileArgument, runCommand } from './command.ts'
import { restoreBackup } from './restore-folder.ts'

await runCommand(async () => {
  const { dataDir, backupPassphraseFile } = parseSettings(process.env)
  const passphrase = backupPassphraseFile === undefined ? undefined : await readPassphrase(backupPassphraseFile)
  const file = resolve(parseFileArgument('restore'))
  const { files, createdAt, platformVersion } = await restoreBackup(file, dataDir, passphrase)
  console.log(`${files.length} files of version ${platformVersion} are in ${dataDir}, as of ${createdAt}.`)
  console.log(`Later changes are not included. Start the platform with: ${shellCommand('npm start', dataDir)}`)
})
