import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Puts an `ssh` first on the PATH that writes down its arguments and runs the command on this machine: what the far side
 * of a connection does. The host named `unreachable` answers as ssh does when it cannot connect; from `silent` nothing ever comes.
 */
export function installFakeSsh(folder: string): { path: string; argumentsFile: string } {
  const binFolder = join(folder, 'bin')
  const argumentsFile = join(folder, 'ssh-arguments')
  mkdirSync(binFolder)
  writeFileSync(
    join(binFolder, 'ssh'),
    `#!/bin/sh
echo "$*" | head -n 1 >> ${argumentsFile}
for word; do before=$host; host=$command; command=$word; done
[ "$host" = unreachable ] && { echo 'ssh: connect to host unreachable: Connection refused' >&2; exit 255; }
[ "$host" = silent ] && exec sleep 20
exec env -i PATH="$PATH" TMPDIR=${folder} sh -c "$command"
`,
  )
  chmodSync(join(binFolder, 'ssh'), 0o755)
  return { path: `${binFolder}${delimiter}${process.env.PATH}`, argumentsFile }
}
