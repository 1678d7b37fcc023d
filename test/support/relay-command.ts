import { delimiter } from 'node:path'
import { Program } from './program.ts'

/** A PATH with Node and curl, but without the project's own Node. */
const path = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

export const runRelayCommand = (relayCommand: string, folder: string): Program =>
  new Program('sh', ['-c', relayCommand], { cwd: folder, env: { PATH: path, HOME: folder } })
