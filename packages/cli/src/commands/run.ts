import type { Command } from 'commander'
import type { Api } from '../api/client.ts'
import {
  type ClusterFilter,
  findCluster,
  findClusters,
  listClusters,
  type NamedCluster,
  parseSelectorOption,
  selectedClusters,
} from '../clusters.ts'
import { connectToFollow } from '../connect.ts'
import { CliError } from '../exit.ts'
import { confirm } from '../print/ask.ts'
import { countText } from '../print/text.ts'
import { say } from '../print/write.ts'
import { runOnOne, type RunOptions } from '../jobs/run-one.ts'
import { runOnMany } from '../jobs/run-many.ts'
import { scriptOf, type ScriptOptions } from '../jobs/script.ts'
import { withClusterFilter } from './cluster.ts'
import { addCommand, collectValues, rawDescription, wholeNumber } from './add-command.ts'

interface TargetOptions extends ClusterFilter {
  cluster?: string[]
  all?: true
  yes?: true
}

export function addRunCommand(program: Command): void {
  const run = addCommand(
    program,
    'run [command...]',
    'run a script on clusters, print its output and exit with its exit code',
    {
      submitJob: [
        "plat run --cluster berlin-1 --name 'Kernel version' -- uname -a",
        `plat run --cluster berlin-1 --name 'Rotate logs' --reason 'Ticket 4711' -f rotate.sh`,
      ],
      submitBatch: [
        "plat run -l 'env=prod,!legacy' --max-errors 3 -- uname -a",
        'plat run --cluster berlin-1 --cluster munich-1 -f check.sh --output-dir results',
        'plat run --all --status Healthy --max-concurrency 20 < patch.sh',
        'plat run --all --group -- uname -r',
      ],
    },
  )
    .option('--cluster <name|id>', 'target cluster; repeatable', collectValues)
    .option('-l, --selector <selector>', 'run on the clusters with these labels, such as env=prod', parseSelectorOption)
    .option('--yes', 'with --selector: do not ask before a run on more than 10 clusters')
    .option('--all', 'run on all clusters, filtered by --status and --type')
  withClusterFilter(run)
    .option('-f, --file <file>', 'script file; - is standard input')
    .option('--keep-line-ends', 'submit CRLF line ends and a byte order mark unchanged')
    .option('--node <name|id>', 'only on this node of the cluster; repeatable', collectValues)
    .option('--name <name>', 'title of the job or batch, at most 100 characters')
    .option('--reason <text>', 'why the script runs, at most 500 characters')
    .option('--timeout <s>', 'execution timeout in seconds, at most 172800', wholeNumber(1, 172_800))
    .option('--deliver-within <s>', 'delivery timeout in seconds', wholeNumber(1, 2_592_000))
    .option('--detach', 'print the job id and do not wait')
    .option('--max-concurrency <n>', 'with several clusters: maximum concurrent jobs', wholeNumber(1, 500))
    .option(
      '--max-errors <n>',
      'with several clusters: cancel the rest if more jobs than this fail',
      wholeNumber(0, 500),
    )
    .option('--raw', rawDescription)
    .option('--group', 'print groups of equal results, failures first, instead of the output of each cluster')
    .option('--output-dir <folder>', 'with several clusters: write one output file per cluster')
    .action(async (words: string[], options: RunOptions & TargetOptions & ScriptOptions & { file?: string }) => {
      const script = await scriptOf(options.file, words, options)
      const api = connectToFollow()
      const clusters = await selectClusters(api, options)
      const [onlyCluster] = clusters
      if (onlyCluster === undefined)
        throw new CliError('refused', 'No matching clusters. See: plat cluster list --show-labels')
      process.exitCode = await (clusters.length === 1 && !options.group
        ? runOnOne(api, await findCluster(api, onlyCluster.id), script, options)
        : runOnMany(api, clusters, script, options))
    })
}

/** Maximum number of clusters that `--selector` may select without a confirmation. */
const maxUnconfirmed = 10

async function selectClusters(api: Api, options: TargetOptions): Promise<NamedCluster[]> {
  const { cluster = [], all, selector, status, type } = options
  if ([all, selector, cluster[0]].filter((target) => target !== undefined).length > 1)
    throw new CliError('usage', 'Use one of --cluster, --selector and --all.')
  if (!all && (status ?? type)) throw new CliError('usage', '--status and --type require --all.')
  if (selector !== undefined) return confirmClusters(api, selector, options)
  if (!all && cluster.length === 0)
    throw new CliError('usage', 'Specify a target: --cluster NAME, --selector LABELS, or --all.')
  if (!all) return findClusters(api, cluster)
  const filter = { ...(status && { status }), ...(type && { type }) }
  return (await listClusters(api, { limit: Infinity, all }, filter)).items
}

async function confirmClusters(api: Api, selector: string, { yes }: TargetOptions): Promise<NamedCluster[]> {
  const clusters = await selectedClusters(api, selector)
  const count = countText(clusters.length, 'cluster')
  say(`${count} selected by ${selector}.`)
  if (clusters.length > maxUnconfirmed) await confirm(`Run the script on ${count}?`, { ...(yes && { yes }) })
  return clusters
}
