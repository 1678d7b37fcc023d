/** In plain JavaScript and without imports of others: who lacks what the rest needs is the one that has to be told. */
import { existsSync } from 'node:fs'

const neededNode = 24
const { node } = process.versions

/** @param {string} problem */
function refuse(problem) {
  console.error(
    `${problem}\nRun npm ci in this folder, without --ignore-scripts and --omit=dev, then the command again.`,
  )
  console.error('Nothing was deployed or changed.')
  process.exit(2)
}

if (!existsSync(new URL('../../node_modules/.bin/sst', import.meta.url))) refuse('What deploys is not installed.')
if (Number(node.split('.')[0]) < neededNode) {
  refuse(`This is Node ${node}; a deployment needs Node ${neededNode}, which npm ci installs.`)
}
