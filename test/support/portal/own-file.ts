import { afterAll } from 'vitest'
import { endAll } from '../program.ts'
import { beginTurns } from './turns.ts'

/** What a file of the portal project leaves to nobody, although one process runs several of them: programs, and whose turn it is. */

beginTurns()
afterAll(endAll)
