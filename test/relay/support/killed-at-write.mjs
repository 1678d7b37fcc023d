/** Kills a relay and its supervisor before or after one of the writes to its programs. Load it with `--import`. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const { KILL_AT, KILL_COUNT_FILE, PLAT_RELAY_SUPERVISED } = process.env
const { renameSync } = fs

function step() {
  fs.appendFileSync(KILL_COUNT_FILE, '.')
  if (fs.statSync(KILL_COUNT_FILE).size !== Number(KILL_AT)) return
  if (PLAT_RELAY_SUPERVISED) process.kill(process.ppid, 'SIGKILL')
  process.kill(process.pid, 'SIGKILL')
}

fs.renameSync = (from, to) => {
  const isProgram = to.includes('/programs/')
  if (isProgram) step()
  renameSync(from, to)
  if (isProgram) step()
}
syncBuiltinESMExports()
