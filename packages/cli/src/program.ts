import { Command } from 'commander'
import { addBatchCommands } from './commands/batch.ts'
import { addClusterCommands } from './commands/cluster.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addJobCommands } from './commands/job.ts'
import { withExamples } from './commands/add-command.ts'
import { addRunCommand } from './commands/run.ts'
import { addSessionCommands } from './commands/session.ts'
import { addAuditCommands } from './commands/audit.ts'
import { addIdentityCommands } from './commands/idp.ts'
import { addModuleCommands } from './commands/module.ts'
import { addNotificationCommands } from './commands/notification.ts'
import { addOrganisationCommands } from './commands/organisation.ts'
import { addSiteCommands } from './commands/site.ts'
import { addTokenCommands } from './commands/token.ts'
import { addUpdateCommands } from './commands/update.ts'
import { addUserCommands } from './commands/user.ts'
import { addWebhookCommands } from './commands/webhook.ts'
import { version } from './version.ts'

const notes = `
Environment
  PLAT_SERVER    the platform's address, http://127.0.0.1:8080 if nothing says otherwise
  PLAT_TOKEN     an access or API token: wins over the session of plat login, and nothing is stored
  PLAT_PASSWORD  the password of plat login
  PLAT_IDP_SECRET  the secret of plat idp add

Exit codes
  0    done
  1    the platform refused, or a registry did
  2    wrong use of the command line, or a module that cannot be built
  3    not signed in
  4    nobody answers, or not the platform
  125  a job ended without an exit code; standard error says why
  130  interrupted
  141  nobody reads the output any more
  plat run, plat job wait and plat batch wait end with the exit code of the script otherwise.`

/** The whole command tree. Every command throws `Failure`, or an error of commander for wrong use. */
export function program(): Command {
  const root = new Command('plat')
    .description('Manages clusters of the platform and runs scripts on them.')
    .version(version())
    .exitOverride()
    // What follows a command is the command's own: `module install hello --version 1.0.0`.
    .enablePositionalOptions()
    .configureHelp({ showGlobalOptions: false })
    .showSuggestionAfterError()
  addSessionCommands(root)
  addClusterCommands(root)
  addRunCommand(root)
  addJobCommands(root)
  addBatchCommands(root)
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
  addCompletionCommand(root)
  return withExamples(root, [
    'plat login --server https://platform.example.com --username ada',
    'plat run --cluster berlin-1 -- uname -a',
    'plat run --all -f check.sh',
  ]).addHelpText('after', notes)
}
