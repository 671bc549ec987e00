"""Formats of check: which one for whom, and the line that puts it to use

What they have in common
    The format never changes the verdict: what holds, the root causes and their order are the same in all. Undecided is
    neither fine nor broken in any of them. --also FORMAT=FILE writes another format of the same run; files are replaced
    in one step, so nobody reads half of one. The command ends with 0 fine, 1 findings, 2 unusable input or a bug of its
    own, 3 undecided; only --format nagios ends as a plugin does. Cron and daemons want the full path of cudadoctor.

Which one
    - text, markdown: people; an issue, a job's summary.
    - json, json-line: programs; a snapshot of a node for cudadoctor fleet, in many lines or in one.
    - junit: Jenkins, GitLab and other viewers of test results. A node is a suite, a check is a case.
    - github: annotations beside a run of GitHub Actions.
    - nagios: Nagios, Icinga and their kin.
    - prometheus: the textfile collector of node_exporter.
    - termination-log: Kubernetes; its first line is a reason for draining a node under Slurm.

Prometheus
    A line for root in /etc/cron.d, where DIR is what node_exporter is told with --collector.textfile.directory:

      */5 * * * * root cudadoctor check --format prometheus -o DIR/cuda.prom

    What is not known has no sample. Alarms can be made of cudadoctor_verdict{verdict="failed"} == 1, of
    cudadoctor_root_cause, which names the check, and of node_textfile_mtime_seconds, which tells when it ran last.

Nagios, Icinga
    A line in nrpe.cfg:

      command[check_cuda]=cudadoctor check --format nagios --timeout 8

    check_nrpe itself waits for ten seconds. OK is exit status 0. CRITICAL is an error, UNKNOWN an undecided machine or
    a check that could not run. A warning leaves it OK, and makes it WARNING with --fail-on warning. --blame machine
    leaves out what users install.

GitHub Actions
    A step:

      - run: >-
          cudadoctor check --format github
          --also "markdown=$GITHUB_STEP_SUMMARY"

    Root causes are errors, the rest is warnings and notices, and the whole report is folded below them.

GitLab, Jenkins
    A job of GitLab; for Jenkins, the same file is what the junit step reads:

      script: cudadoctor check --also junit=cudadoctor.xml
      artifacts: {when: always, reports: {junit: cudadoctor.xml}}

    The result is red exactly where the exit status is not 0. A finding below --fail-on, and what could not be judged
    beside the chain from GPU to wheel, are skipped cases with their reason.

Kubernetes
    In a container whose end is the verdict, so that kubectl describe pod tells it:

      cudadoctor check --timeout 20 --also termination-log=/dev/termination-log

Slurm
    The first line of a termination log can be the reason of a drain: at most 120 characters, and none that a shell or
    scontrol takes for its own. In a health check:

      cudadoctor check --blame machine --retry-code 75 --timeout 20 \\
        --format termination-log -o "$file"
      [ $? -ne 75 ] || scontrol update "nodename=$SLURMD_NODENAME" \\
        state=drain "reason=$(head -n 1 "$file")"

    Exit status 75 alone is a fault of the machine. `cudadoctor recipes` has whole pieces for Slurm and Kubernetes.

References
    https://www.monitoring-plugins.org/doc/guidelines.html
    https://github.com/prometheus/node_exporter#textfile-collector
    https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    https://docs.gitlab.com/ci/testing/unit_test_reports/
"""
