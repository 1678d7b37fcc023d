import { delimiter } from 'node:path'
import { Program } from './program.ts'

/** A machine that has Node and curl, and nothing of this project: the project's own Node is not on its path. */
const path = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

/** Pastes a relay command into a shell, in some folder of somebody's machine. */
export const runRelayCommand = (relayCommand: string, folder: string): Program =>
  new Program('sh', ['-c', relayCommand], { cwd: folder, env: { PATH: path, HOME: folder } })
