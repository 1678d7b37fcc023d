import { afterAll, afterEach } from 'vitest'
import { endAll, showBesideFailure } from '../program.ts'

// Portal test files share a process; each stops the programs it started.
afterEach(showBesideFailure)
afterAll(endAll)
