import { Command, Option } from 'commander'
import { addBatchCommands } from './commands/batch.ts'
import { addClusterCommands } from './commands/cluster.ts'
import { addContextCommands } from './commands/context.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addJobCommands } from './commands/job.ts'
import { withExamples } from './commands/add-command.ts'
import { addRunCommand } from './commands/run.ts'
import { addSessionCommands } from './commands/session.ts'
import { addAuditCommands } from './commands/audit.ts'
import { addIdentityCommands } from './commands/idp.ts'
import { addModuleCommands } from './commands/module.ts'
import { addNotificationCommands } from './commands/notification.ts'
import { addOpenCommand } from './commands/open.ts'
import { addOrganisationCommands } from './commands/organisation.ts'
import { addEnrollmentKeyCommands } from './commands/enrollment-key.ts'
import { addRelayCommands } from './commands/relay.ts'
import { addNodeCommands } from './commands/node.ts'
import { addPlatformCommands } from './commands/platform.ts'
import { addSiteCommands } from './commands/site.ts'
import { addTokenCommands } from './commands/token.ts'
import { addUpdateCommands } from './commands/update.ts'
import { addUserCommands } from './commands/user.ts'
import { addWebhookCommands } from './commands/webhook.ts'
import { setContext } from './context.ts'
import { type ColorMode, colorModes, setColorMode } from './print/color.ts'
import { version } from './version.ts'

const notesText = `
Environment
  PLAT_CONTEXT   context, instead of the one of plat context use
  PLAT_SERVER    address of the platform (default: http://127.0.0.1:8080)
  PLAT_TOKEN     access or API token; overrides the session of plat login and is not stored
  PLAT_PASSWORD  password for plat login
  PLAT_IDP_SECRET  secret for plat idp add
  NO_COLOR, FORCE_COLOR  without or with colours
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY  proxy for all requests
  NODE_EXTRA_CA_CERTS  file with a private certificate authority

Exit codes
  0    success
  1    rejected by the platform or a registry, or failed
  2    invalid usage, or a module that cannot be built
  3    not signed in, or an unusable context
  4    no response, status 503, or not from the platform
  125  the job has no exit code; see standard error
  130  interrupted, or declined
  141  the reader closed the output
  Otherwise plat run, plat job wait and plat batch wait exit with the exit code of the script.`

/** Creates the command tree. Commands throw `CliError`; commander throws `CommanderError` for invalid usage. */
export function createProgram(): Command {
  const root = new Command('plat')
    .description('Manage clusters and run scripts on them.')
    .version(version())
    .exitOverride()
    // Options after a command belong to the command, as in `module install hello --version 1.0.0`.
    .enablePositionalOptions()
    .configureHelp({ showGlobalOptions: false })
    .showSuggestionAfterError()
    .showHelpAfterError('See: plat --help, plat COMMAND --help')
  addSessionCommands(root)
  addContextCommands(root)
  addClusterCommands(root)
  addRunCommand(root)
  addJobCommands(root)
  addBatchCommands(root)
  addEnrollmentKeyCommands(root)
  addNodeCommands(root)
  addRelayCommands(root)
  addPlatformCommands(root)
  addSiteCommands(root)
  addTokenCommands(root)
  addUserCommands(root)
  addOrganisationCommands(root)
  addIdentityCommands(root)
  addModuleCommands(root)
  addUpdateCommands(root)
  addNotificationCommands(root)
  addWebhookCommands(root)
  addAuditCommands(root)
  addOpenCommand(root)
  addCompletionCommand(root)
  addGlobalOptions(root)
  return withExamples(root, [
    'plat login --server https://platform.example.com --username ada',
    'plat run --cluster berlin-1 -- uname -a',
    'plat run --all -f check.sh',
  ]).addHelpText('after', notesText)
}

interface GlobalOptions {
  context?: string
  color?: ColorMode
}

// Every command accepts the global options, before or after its name; only `plat --help` lists them.
function addGlobalOptions(root: Command): void {
  const add = (command: Command, isHidden: boolean): void => {
    command
      .addOption(new Option('--context <name>', 'server and user; see plat context').hideHelp(isHidden))
      .addOption(new Option('--color <when>', 'when to print colours').choices(colorModes).hideHelp(isHidden))
    for (const child of command.commands) add(child, true)
  }
  add(root, false)
  root.hook('preAction', (_, command) => {
    for (const each of commandPath(command)) {
      const { context, color } = each.opts<GlobalOptions>()
      if (context !== undefined) setContext(context)
      if (color !== undefined) setColorMode(color)
      // The global options are removed, because actions pass all other options on, for example to a query.
      each.setOptionValue('context', undefined).setOptionValue('color', undefined)
    }
  })
}

/** Returns a command and the commands that contain it, from the root. */
const commandPath = (command: Command): Command[] =>
  command.parent === null ? [command] : [...commandPath(command.parent), command]
