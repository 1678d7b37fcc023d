/** An executor whose process is killed when it would record the process of a script. */
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
