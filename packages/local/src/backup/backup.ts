/** `npm run backup -- FILE`: writes the state in the data folder to a file. The platform must be stopped. */
import { resolve } from 'node:path'
import { parseSettings } from '../settings.ts'
import { parseArgs } from 'node:util'
import { runCommand } from './command.ts'
import { readPassphrase } from './encryption.ts'
import { BackupError } from './manifest.ts'
import { writeBackup } from './write-backup.ts'

const noPassphraseMessage =
  'A backup contains keys and secrets, so it is encrypted: set PLAT_BACKUP_PASSPHRASE_FILE to a file with a passphrase, or use --unencrypted.'

function parseBackupArguments(): { file: string; isUnencrypted: boolean } {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { unencrypted: { type: 'boolean' } } })
  const [file, ...rest] = positionals
  if (file === undefined || rest.length > 0) throw new BackupError('Name one file: npm run backup -- FILE')
  return { file, isUnencrypted: values.unencrypted === true }
}

await runCommand(async () => {
  const { dataDir, backupPassphraseFile } = parseSettings(process.env)
  const { file, isUnencrypted } = parseBackupArguments()
  if (backupPassphraseFile === undefined && !isUnencrypted) throw new BackupError(noPassphraseMessage)
  const passphrase = isUnencrypted ? undefined : await readPassphrase(backupPassphraseFile ?? '')
  const target = resolve(file)
  const { files, createdAt } = await writeBackup(dataDir, target, passphrase)
  const mebibytes = files.reduce((sum, { bytes }) => sum + bytes, 0) / 2 ** 20
  console.log(`${files.length} files, ${mebibytes.toFixed(1)} MiB, are in ${target}, as of ${createdAt}.`)
  console.log(
    isUnencrypted
      ? 'It contains unencrypted keys and secrets. Store it safely.'
      : 'It is encrypted. Keep the passphrase elsewhere.',
  )
})
