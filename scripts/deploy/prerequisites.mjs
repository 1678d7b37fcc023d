/** This file is plain JavaScript without dependencies, so that it runs before dependencies are installed. */
import { existsSync } from 'node:fs'

const requiredNodeMajor = 24
const { node } = process.versions

/** @param {string} problem */
function reject(problem) {
  console.error(
    `${problem}\nRun npm ci in this folder, without --ignore-scripts and --omit=dev, then the command again.`,
  )
  console.error('Nothing was deployed or changed.')
  process.exit(2)
}

if (!existsSync(new URL('../../node_modules/.bin/sst', import.meta.url))) reject('SST is not installed.')
if (Number(node.split('.')[0]) < requiredNodeMajor) {
  reject(`This is Node ${node}; a deployment needs Node ${requiredNodeMajor}, which npm ci installs.`)
}
