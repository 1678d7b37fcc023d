import type { Command } from 'commander'
import type { Api } from '../api/client.ts'
import { type Cluster, type ClusterFilter, findClusters, listClusters } from '../clusters.ts'
import { connectToFollow } from '../connect.ts'
import { CliError } from '../exit.ts'
import { type RunOptions, runOnOne } from '../jobs/run-one.ts'
import { runOnMany } from '../jobs/run-many.ts'
import { scriptOf } from '../jobs/script.ts'
import { withClusterFilter } from './cluster.ts'
import { addCommand, several, wholeNumber } from './add-command.ts'

interface Choice extends ClusterFilter {
  cluster?: string[]
  all?: true
}

/** `plat run`. */
export function addRunCommand(program: Command): void {
  const run = addCommand(
    program,
    'run [command...]',
    'run a script on clusters, follow it, and end with its exit code',
    [
      'plat run --cluster berlin-1 -- uname -a',
      'plat run --cluster berlin-1 --cluster munich-1 -f check.sh --output-dir results',
      'plat run --all --status Healthy --max-concurrency 20 < patch.sh',
    ],
  )
    .option('--cluster <name|id>', 'where to run; several times for several clusters', several)
    .option('--all', 'run on every cluster, or on those that --status and --type choose')
  withClusterFilter(run)
    .option('-f, --file <file>', 'the script; - is standard input')
    .option('--node <name|id>', 'only on this node of the cluster; several times for several nodes', several)
    .option('--timeout <s>', 'seconds that the script may run, at most 172800', wholeNumber(1, 172_800))
    .option('--deliver-within <s>', 'seconds that it may wait for a relay that is away', wholeNumber(1, 2_592_000))
    .option('--detach', 'print the identifier and do not wait')
    .option('--max-concurrency <n>', 'with several clusters: on so many at once', wholeNumber(1, 500))
    .option('--max-errors <n>', 'with several clusters: stop once more than so many have failed', wholeNumber(0, 500))
    .option('--output-dir <folder>', 'with several clusters: a file for the output of each')
    .action(async (words: string[], options: RunOptions & Choice & { file?: string }) => {
      const script = await scriptOf(options.file, words)
      const api = connectToFollow()
      const clusters = await chosen(api, options)
      const [only] = clusters
      if (only === undefined) throw new CliError('refused', 'No cluster fits.')
      process.exitCode = await (clusters.length === 1
        ? runOnOne(api, only, script, options)
        : runOnMany(api, clusters, script, options))
    })
}

async function chosen(api: Api, { cluster = [], all, status, type }: Choice): Promise<Cluster[]> {
  if (all && cluster.length > 0) throw new CliError('usage', 'Say --cluster or --all, not both.')
  if (!all && (status ?? type)) throw new CliError('usage', '--status and --type choose among --all clusters.')
  if (!all && cluster.length === 0) throw new CliError('usage', 'Say where to run: --cluster NAME, or --all.')
  if (!all) return findClusters(api, cluster)
  const filter = { ...(status && { status }), ...(type && { type }) }
  return (await listClusters(api, { limit: Infinity, all }, filter)).items
}
