"""The first tables: one a kind, the change feed, leadership, quota guards, ledgers, audit, tokens."""

from alembic import op

revision = "0001"
down_revision = None

KINDS = {
    "namespaces": "",
    "workload_priority_classes": "",
    "topologies": "",
    "resource_flavors": "",
    "admission_checks": "",
    "cohorts": """
        parent text collate "C" generated always as (spec ->> 'parentName') stored,
    """,
    "cluster_queues": """
        cohort text collate "C" generated always as (spec ->> 'cohortName') stored,
    """,
    "local_queues": """
        cluster_queue text collate "C" generated always as (spec ->> 'clusterQueue') stored,
    """,
    "workloads": """
        queue_name text collate "C" generated always as (spec ->> 'queueName') stored,
        priority integer generated always as ((spec ->> 'priority')::integer) stored,
        cluster_queue text collate "C"
            generated always as (status -> 'admission' ->> 'clusterQueue') stored,
        state text not null constraint workloads_state_check check (
            state in ('pending', 'admitted', 'evicting', 'inactive', 'finished', 'gone')
        ),
        attempt integer not null,
        epoch bigint not null,
        decided_version bigint not null,
        synced_version bigint not null,
        next_sync_at timestamptz not null default 'epoch',
        sync_failures integer not null,
        next_deadline_at timestamptz,
        job jsonb,
        template jsonb,
        job_uid text generated always as (job ->> 'uid') stored,
        job_kind text generated always as (job ->> 'kind') stored,
        job_name text collate "C" generated always as (job ->> 'name') stored,
        constraint workloads_counts_check check (
            attempt >= 0 and epoch >= 0 and sync_failures >= 0
        ),
        constraint workloads_versions_check check (
            synced_version >= 0 and synced_version <= decided_version
        ),
    """,
}

WORKLOAD_INDEXES = (
    """create unique index workloads_one_live_per_job on workloads (job_uid)
       where state not in ('finished', 'gone')""",
    "create index workloads_by_job on workloads (job_uid) where job_uid is not null",
    """create index workloads_to_sync on workloads (next_sync_at, uid)
       where decided_version > synced_version""",
    """create index workloads_due on workloads (next_deadline_at, uid)
       where next_deadline_at is not null""",
    """create index workloads_charged on workloads (cluster_queue, uid)
       where state in ('admitted', 'evicting')""",
)

JOURNAL = (
    "create sequence change_numbers start 2",
    """create table changes (
        number bigint not null constraint changes_pkey primary key,
        kind text not null,
        namespace text collate "C" not null,
        name text collate "C" not null,
        uid uuid not null,
        type text not null
            constraint changes_type_check check (type in ('ADDED', 'MODIFIED', 'DELETED')),
        object jsonb not null,
        at timestamptz not null default clock_timestamp()
    )""",
    """create table lease (
        id text not null,
        epoch bigint not null,
        holder text not null,
        expires_at timestamptz not null,
        backend text not null default '',
        constraint lease_pkey primary key (id, epoch)
    )""",
    """create table cohort_roots (
        name text collate "C" not null constraint cohort_roots_pkey primary key,
        version bigint not null default 0
    )""",
    """create table admissions (
        workload_uid uuid not null,
        attempt integer not null,
        part integer not null default 0,
        cluster_queue text collate "C" not null,
        flavor text collate "C" not null,
        resource text collate "C" not null,
        namespace text collate "C" not null,
        name text collate "C" not null,
        amount bigint not null,
        borrowed bigint not null,
        started_at timestamptz not null default now(),
        ended_at timestamptz,
        constraint admissions_pkey
            primary key (workload_uid, attempt, part, cluster_queue, flavor, resource),
        constraint admissions_amounts_check
            check (amount >= 0 and borrowed >= 0 and borrowed <= amount),
        constraint admissions_span_check check (ended_at >= started_at)
    )""",
    "create index admissions_open on admissions (workload_uid) where ended_at is null",
    "create index admissions_by_queue on admissions (cluster_queue, started_at)",
    """create table decisions (
        id bigint not null generated always as identity constraint decisions_pkey primary key,
        workload_uid uuid not null,
        at timestamptz not null default clock_timestamp(),
        attempt integer not null,
        cluster_queue text collate "C" not null,
        outcome text not null,
        reason text not null,
        message text not null,
        facts jsonb
    )""",
    "create index decisions_by_workload on decisions (workload_uid, id)",
    """create table audit (
        id bigint not null generated always as identity constraint audit_pkey primary key,
        at timestamptz not null default clock_timestamp(),
        actor_kind text not null,
        actor text not null,
        verb text not null,
        kind text not null,
        namespace text collate "C" not null,
        name text collate "C" not null,
        uid uuid not null,
        number bigint not null,
        before jsonb,
        after jsonb
    )""",
    "create index audit_by_object on audit (kind, namespace, name, id)",
    """create table tokens (
        id text not null constraint tokens_pkey primary key,
        hash bytea not null,
        role text not null constraint tokens_role_check check (role in ('admin', 'viewer')),
        name text collate "C" not null constraint tokens_name_key unique,
        created_at timestamptz not null,
        expires_at timestamptz,
        last_used_at timestamptz
    )""",
    """create table meta (
        key text not null constraint meta_pkey primary key,
        value jsonb not null
    )""",
)

# The lock is held until the commit is visible, so numbers appear in the order they were given. Only its holder touches
# the sequence, which makes the block consecutive.
TAKE_NUMBERS = """
create function take_change_numbers(amount integer) returns bigint language plpgsql as $$
declare
    first bigint;
begin
    perform pg_advisory_xact_lock(x'51ce0001'::bigint);
    first := nextval('change_numbers');
    if amount > 1 then
        perform setval('change_numbers', first + amount - 1);
    end if;
    perform pg_notify('sluice_changes', (first + amount - 1)::text);
    return first;
end
$$
"""

APPEND_ONLY = (
    """create function refuse_to_rewrite() returns trigger language plpgsql as $$
    begin
        raise exception 'rows of % are never changed or removed', tg_table_name
            using errcode = 'restrict_violation';
    end
    $$""",
    """create trigger audit_append_only before update or delete or truncate on audit
       for each statement execute function refuse_to_rewrite()""",
)

ROWS = (
    "insert into meta values ('changes_horizon', '{\"number\": 1}')",
    "insert into meta values ('database', jsonb_build_object('id', gen_random_uuid()))",
    "insert into lease values ('leader', 0, '', 'epoch')",
)


def upgrade() -> None:
    for table, columns in KINDS.items():
        op.execute(f"""
            create table {table} (
                uid uuid not null constraint {table}_pkey primary key,
                namespace text collate "C" not null default '',
                name text collate "C" not null,
                generation bigint not null default 0,
                resource_version bigint not null,
                created_at timestamptz not null,
                deletion_at timestamptz,
                metadata jsonb not null,
                spec jsonb,
                status jsonb,
                {columns}
                constraint {table}_namespace_name_key unique (namespace, name)
            )
        """)
    for statement in (*WORKLOAD_INDEXES, *JOURNAL, TAKE_NUMBERS, *APPEND_ONLY, *ROWS):
        op.execute(statement)


def downgrade() -> None:
    journal = (
        "changes",
        "lease",
        "cohort_roots",
        "admissions",
        "decisions",
        "audit",
        "tokens",
        "meta",
    )
    for table in (*KINDS, *journal):
        op.execute(f"drop table {table}")
    op.execute("drop function refuse_to_rewrite()")
    op.execute("drop function take_change_numbers(integer)")
    op.execute("drop sequence change_numbers")
