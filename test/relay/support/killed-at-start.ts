/** Starts a script, and kills itself at the point at which the relay records the process of the script. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { localExecutor } from '../../../packages/relay/src/executor/local.ts'

const [folder = '', script = ''] = process.argv.slice(2)
localExecutor(folder).start({
  jobId: 'job_1',
  nodeName: 'here',
  script,
  onOutput: () => {},
  onSpawned: ({ pid }) => {
    writeFileSync(join(folder, 'leader'), `${pid}\n`)
    process.kill(process.pid, 'SIGKILL')
  },
})
