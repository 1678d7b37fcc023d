/** `npm run backup -- FILE`: writes all state of this machine's platform to a file. The platform must be stopped. */
import { resolve } from 'node:path'
import { parseSettings } from '../settings.ts'
import { fileArgument, runCommand } from './command.ts'
import { writeBackup } from './write-backup.ts'

await runCommand(async () => {
  const target = resolve(fileArgument('backup'))
  const { files, createdAt } = await writeBackup(parseSettings(process.env).dataDir, target)
  const mebibytes = files.reduce((sum, { bytes }) => sum + bytes, 0) / 2 ** 20
  console.log(`${files.length} files, ${mebibytes.toFixed(1)} MiB, are in ${target}, as of ${createdAt}.`)
  console.log('It contains keys and secrets. Store it safely.')
})
