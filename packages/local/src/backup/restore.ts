/** `npm run restore -- FILE`: restores the data folder from a backup. */
import { exitWithUsage, parseCommandLine, resolveFromCaller } from '../command-line.ts'
import { parseSettings } from '../settings.ts'
import { shellCommand } from '../shell-command.ts'
import { readPassphrase } from './encryption.ts'
import { runCommand } from './command.ts'
import { restoreBackup } from './restore-folder.ts'

const usage = `npm run restore -- FILE

Restores the data folder (PLAT_DATA_DIR) from a backup. The folder must be empty or missing.

Environment: PLAT_BACKUP_PASSPHRASE_FILE names the file with the passphrase of an encrypted backup.`

const [path, ...excess] = parseCommandLine(usage, { allowPositionals: true }).positionals
if (path === undefined || excess.length > 0) exitWithUsage('Name one file.', usage)
const file = resolveFromCaller(path)

await runCommand(async () => {
  const { dataDir, backupPassphraseFile } = parseSettings(process.env)
  const passphrase = backupPassphraseFile === undefined ? undefined : await readPassphrase(backupPassphraseFile)
  const { files, createdAt, platformVersion } = await restoreBackup(file, dataDir, passphrase)
  console.log(`${files.length} files of version ${platformVersion} are in ${dataDir}, as of ${createdAt}.`)
  console.log(`Later changes are not included. Start the platform with: ${shellCommand('npm start', dataDir)}`)
})
