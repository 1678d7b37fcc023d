/** `npm run backup -- FILE`: writes the state in the data folder to a file. The platform must be stopped. */
import { parseSettings } from '../settings.ts'
import { exitWithUsage, parseCommandLine, resolveFromCaller } from '../command-line.ts'
import { runCommand } from './command.ts'
import { readPassphrase } from './encryption.ts'
import { BackupError } from './manifest.ts'
import { writeBackup } from './write-backup.ts'

const noPassphraseMessage =
  'A backup contains keys and secrets, so it is encrypted: set PLAT_BACKUP_PASSPHRASE_FILE to a file with a passphrase, or use --unencrypted.'

const usage = `npm run backup -- FILE [--unencrypted]

Writes the state in the data folder (PLAT_DATA_DIR) to a file. Stop the platform first.

  --unencrypted  does not encrypt the backup, which contains keys and secrets

Environment: PLAT_BACKUP_PASSPHRASE_FILE names the file with the passphrase for the encryption.`

const { values, positionals } = parseCommandLine(usage, {
  allowPositionals: true,
  options: { unencrypted: { type: 'boolean', default: false } },
})
const [file, ...excess] = positionals
if (file === undefined || excess.length > 0) exitWithUsage('Name one file.', usage)
const { unencrypted: isUnencrypted } = values

await runCommand(async () => {
  const { dataDir, backupPassphraseFile } = parseSettings(process.env)
  if (backupPassphraseFile === undefined && !isUnencrypted) throw new BackupError(noPassphraseMessage)
  const passphrase = isUnencrypted ? undefined : await readPassphrase(backupPassphraseFile ?? '')
  const target = resolveFromCaller(file)
  const { files, createdAt } = await writeBackup(dataDir, target, passphrase)
  const mebibytes = files.reduce((sum, { bytes }) => sum + bytes, 0) / 2 ** 20
  console.log(`${files.length} files, ${mebibytes.toFixed(1)} MiB, are in ${target}, as of ${createdAt}.`)
  console.log(
    isUnencrypted
      ? 'It contains unencrypted keys and secrets. Store it safely.'
      : 'It is encrypted. Keep the passphrase elsewhere.',
  )
})
