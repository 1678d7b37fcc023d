import { afterAll, afterEach } from 'vitest'
import { endAll, showBesideFailure } from '../program.ts'
import { beginTurns } from './turns.ts'

/** What a file of the portal project leaves to nobody, although one process runs several of them: programs, and whose turn it is. */

beginTurns()
afterEach(showBesideFailure)
afterAll(endAll)
